// Runs the real program, as a user would.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace firstseen {

struct Ran {
  int exit_status = -1;  // -signal when a signal ended it
  std::string out;
  std::string err;
};

// Runs `firstseen arguments...` with `input` on standard input, to its end.
Ran RunProgram(const std::vector<std::string>& arguments, std::string_view input = "");

// One that runs beside the test. Its standard error goes to that of the test.
class Child {
 public:
  explicit Child(const std::vector<std::string>& arguments);
  ~Child();  // kills it
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // False when it has gone.
  bool Write(std::string_view text);
  void CloseInput();
  // Without the line end; "" at the end of its output. Waits.
  std::string ReadLine();
  // Everything up to the end of its output.
  std::string ReadAll();
  void Signal(int signal);
  // The exit status, or -signal.
  int Wait();

 private:
  int process_ = -1;
  int input_ = -1;
  int output_ = -1;
  std::string buffer_;
};

}  // namespace firstseen
