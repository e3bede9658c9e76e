// A file that a test writes and that goes with it.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

namespace cadans::sim {

/// A file of the test's own, gone with it.
class Scratch {
  public:
    explicit Scratch(const std::string& content, const std::string& name = "trace")
        : path_(testing::TempDir() + std::to_string(::getpid()) + "-" + name) {
        std::ofstream(path_, std::ios::binary) << content;
    }
    ~Scratch() { std::remove(path_.c_str()); }
    const std::string& path() const { return path_; }

  private:
    std::string path_;
};

}  // namespace cadans::sim
