// One client's connection: requests in, replies out, in order. Private to the server.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "serve/http/line.h"
#include "serve/http/server_core.h"

namespace cadans::serve {

/// A client that closes its sending side counts as gone: that is all that can be seen of most who leave.
class Connection : public std::enable_shared_from_this<Connection> {
  public:
    Connection(Server::Core& core, boost::asio::ip::tcp::socket socket);
    ~Connection();

    boost::asio::awaitable<void> run();

    void close();            ///< at once
    void close_when_idle();  ///< now if no request is being served, else after it
    void fail_generation(const Error& error);

  private:
    enum class Next { keep, close };

    boost::asio::awaitable<bool> read_head(std::string& head);
    boost::asio::awaitable<Next> serve_one(const std::string& head);
    boost::asio::awaitable<Next> answer(HttpRequest request, bool keep);
    boost::asio::awaitable<Next> stream(const HttpRequest& request, Generation& generation, bool keep);
    boost::asio::awaitable<Next> stream(const HttpRequest& request, Feed& feed);
    boost::asio::awaitable<Next> wait_and_reply(const HttpRequest& request, Generation& generation, bool keep);
    boost::asio::awaitable<Next> wait_and_reply(const HttpRequest& request, Preload& preload, bool keep);
    boost::asio::awaitable<void> abandon(Generation& generation);
    boost::asio::awaitable<bool> send_reply(const HttpRequest& request, HttpReply reply, bool keep);
    boost::asio::awaitable<void> send_fault(int status, std::string_view message);
    boost::asio::awaitable<bool> send(std::string_view bytes, bool* waited = nullptr);
    boost::asio::awaitable<Opened> open(const HttpRequest& request);
    template <class Made>
    boost::asio::awaitable<Made> make_on(boost::asio::thread_pool& thread, std::function<Made()> make);

    Server::Core& core_;
    std::shared_ptr<Line> line_;
    std::string local_address_;
    bool closing_ = false, serving_ = false, http_1_0_ = false;
    Generation* generation_ = nullptr;
};

}  // namespace cadans::serve
