// The program `firstseen`: parses the command line and runs one subcommand.
#pragma once

namespace firstseen::cli {

// Returns the exit status: 0 done, 1 the work failed, 2 wrong usage.
int RunCli(int argc, const char* const* argv);

}  // namespace firstseen::cli
