// Starts a program and measures the time to its first line of output.
//
//   launcher PROGRAM ARGUMENT...
//
// Prints "NANOSECONDS PID LINE" when the line has come. The program then waits for the end of its
// standard input, so that its memory can be looked at; it gets that, and this ends, when standard
// input ends here.

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  int input[2];
  int output[2];
  if (pipe2(input, O_CLOEXEC) != 0 || pipe2(output, O_CLOEXEC) != 0) {
    std::perror("launcher: pipe2");
    return 1;
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);

  const auto before = std::chrono::steady_clock::now();
  pid_t pid = 0;
  if (posix_spawn(&pid, argv[1], &actions, nullptr, argv + 1, environ) != 0) {
    std::perror("launcher: posix_spawn");
    return 1;
  }
  close(output[1]);
  std::string line;
  char buffer[4096];
  while (line.find('\n') == std::string::npos) {
    const ssize_t count = read(output[0], buffer, sizeof buffer);
    if (count <= 0) break;
    line.append(buffer, static_cast<std::size_t>(count));
  }
  const std::chrono::nanoseconds time = std::chrono::steady_clock::now() - before;
  std::printf("%lld %d %s\n", static_cast<long long>(time.count()), static_cast<int>(pid),
              line.substr(0, line.find('\n')).c_str());
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  close(input[1]);
  int status = 0;
  waitpid(pid, &status, 0);
  return 0;
}
