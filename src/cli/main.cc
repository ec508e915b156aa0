#include "cli/cli.h"

int main(int argc, char** argv) { return firstseen::cli::RunCli(argc, argv); }
