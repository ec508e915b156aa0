// A data directory, and short ways to run the program on it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "cli/program.h"
#include "support/directory.h"

namespace firstseen {

class CliTest : public testing::Test {
 protected:
  std::string path(std::string_view name) const {
    return directory_.path() + "/" + std::string(name);
  }
  std::string data() const { return path("data"); }

  // `arguments` with --data.
  std::vector<std::string> Arguments(std::vector<std::string> arguments) const {
    arguments.push_back("--data");
    arguments.push_back(data());
    return arguments;
  }
  Ran Run(const std::vector<std::string>& arguments, std::string_view input = "") const {
    return RunProgram(Arguments(arguments), input);
  }

  // The set kyc of (name, id_no) in years, with all normalisations.
  void MakeSet() const {
    ASSERT_EQ(Run({"init"}).exit_status, 0);
    const Ran ran =
        Run({"create", "kyc", "--window", "year", "--fields", "name,id_no", "--normalise",
             "trim,width,zero-width,name-dot,x-check-digit,id-15-to-18"});
    ASSERT_EQ(ran.exit_status, 0) << ran.err;
  }

  void WriteFile(std::string_view name, std::string_view content) const {
    std::ofstream(path(name), std::ios::binary) << content;
  }
  static std::string Content(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  static std::vector<std::string> Lines(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }
  static std::vector<std::string> Files(const std::string& directory) {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    return files;
  }

  // Turns a byte over in the first frame of the first log segment.
  void DamageLog() const {
    for (const std::string& file : Files(data())) {
      if (!file.ends_with(".log")) continue;
      std::fstream log(file, std::ios::binary | std::ios::in | std::ios::out);
      log.seekg(100);
      const char byte = static_cast<char>(log.get());
      log.seekp(100);
      log.put(static_cast<char>(byte ^ 1));
      return;
    }
    FAIL() << "no log segment";
  }

  TestDirectory directory_;
};

}  // namespace firstseen
