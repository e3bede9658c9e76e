// A made-up /proc and /sys, for tests of what is read there.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace cadans::testing {

/// Files below a folder of their own, gone afterwards.
class FakeSystem {
  public:
    FakeSystem()
        : root_(::testing::TempDir() + "/cadans_system_" + std::to_string(::getpid()) + "_" +
                ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
        std::filesystem::remove_all(root_);
    }
    ~FakeSystem() { std::filesystem::remove_all(root_); }
    FakeSystem(const FakeSystem&) = delete;
    FakeSystem& operator=(const FakeSystem&) = delete;

    FakeSystem& write(const std::string& path, const std::string& text) {
        std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
        std::ofstream(root_ + path) << text;
        return *this;
    }
    const std::string& root() const { return root_; }

  private:
    std::string root_;
};

}  // namespace cadans::testing
