// Chat with SmolLM2-135M-Instruct. See --help.

#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "examples/cc_chat/chat_session.h"
#include "examples/cc_chat/gguf.h"
#include "examples/cc_chat/llm.h"
#include "examples/cc_chat/sampler.h"
#include "examples/cc_chat/tokenizer.h"
#include "tools/cpp/runfiles/runfiles.h"

namespace {

constexpr char kHelp[] = R"(Chat with SmolLM2-135M-Instruct, on the CPU, without Python.

  cc_chat --prompt TEXT   answer once
  cc_chat                 converse: one message per line. /reset begins anew, /quit or Ctrl-D ends

  --system TEXT           the system prompt
  --max-tokens N          the longest answer (default 512)
  --temperature T         0 always takes the likeliest token (default 0.2)
  --top-k K               choose among the K likeliest tokens; 0: all (default 0)
  --top-p P               choose among the likeliest with probability P together (default 0.9)
  --seed N                the same seed gives the same answer (default 0)
  --tokenizer FILE.gguf   where the tokenizer and the chat template are (default: built in)
  --weights FILE          the model's weights (default: built in)
  --help

The answer goes to stdout, everything else to stderr. OMP_NUM_THREADS sets the number of threads.
)";

struct Flags {
  std::optional<std::string> prompt;
  std::string system{chat::kDefaultSystemPrompt};
  int max_tokens = 512;
  chat::SamplerOptions sampling{.temperature = 0.2f, .top_p = 0.9f};
  std::string tokenizer, weights;
  bool help = false;
};

// Under `bazel run`, a path is meant relative to where the user typed it.
std::string UserPath(const std::string& path) {
  const char* folder = std::getenv("BUILD_WORKING_DIRECTORY");
  return folder && !path.starts_with('/') ? std::string(folder) + "/" + path : path;
}

// A mistake on the command line.
struct UsageError : std::runtime_error {
  using runtime_error::runtime_error;
};

template <class T>
void ParseNumber(const std::string& flag, std::string_view text, T& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw UsageError(flag + ": \"" + std::string(text) + "\" is not a number in its range");
  }
}

// Takes `--flag value` and `--flag=value`.
Flags ParseFlags(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i < argc; ++i) {
    std::string flag = argv[i];
    if (flag == "--help") {
      flags.help = true;
      continue;
    }
    std::optional<std::string> given;
    if (const size_t equals = flag.find('='); equals != flag.npos) {
      given = flag.substr(equals + 1);
      flag.resize(equals);
    }
    const auto value = [&]() -> std::string {
      if (given) return *given;
      if (++i == argc) throw UsageError(flag + " needs a value");
      return argv[i];
    };
    if (flag == "--prompt") {
      flags.prompt = value();
    } else if (flag == "--system") {
      flags.system = value();
    } else if (flag == "--tokenizer") {
      flags.tokenizer = UserPath(value());
    } else if (flag == "--weights") {
      flags.weights = UserPath(value());
    } else if (flag == "--max-tokens") {
      ParseNumber(flag, value(), flags.max_tokens);
      if (flags.max_tokens < 1) throw UsageError("--max-tokens must be 1 or more");
    } else if (flag == "--temperature") {
      ParseNumber(flag, value(), flags.sampling.temperature);
    } else if (flag == "--top-k") {
      ParseNumber(flag, value(), flags.sampling.top_k);
    } else if (flag == "--top-p") {
      ParseNumber(flag, value(), flags.sampling.top_p);
    } else if (flag == "--seed") {
      ParseNumber(flag, value(), flags.sampling.seed);
    } else {
      throw UsageError("unknown argument " + std::string(argv[i]));
    }
  }
  try {
    chat::Sampler{flags.sampling};
  } catch (const std::invalid_argument& error) {
    throw UsageError(std::string("--") + error.what());
  }
  return flags;
}

std::string DefaultTokenizer(const char* argv0) {
  using bazel::tools::cpp::runfiles::Runfiles;
  std::string error;
  const std::unique_ptr<Runfiles> runfiles(
      Runfiles::Create(argv0, BAZEL_CURRENT_REPOSITORY, &error));
  if (!runfiles) throw std::runtime_error(error + "; give the file with --tokenizer");
  return runfiles->Rlocation(TOKENIZER_RLOCATION);
}

void Answer(chat::ChatSession& session, const std::string& message, int max_tokens) {
  const chat::Reply reply = session.Ask(
      message, max_tokens, [](std::string_view text) { std::cout << text << std::flush; });
  std::cout << std::endl;
  if (reply.stop == chat::Reply::kMaxTokens) std::cerr << "[cut: --max-tokens]\n";
  if (reply.stop == chat::Reply::kContextFull) std::cerr << "[cut: the context is full]\n";
  std::fprintf(stderr, "[prefill %d tokens, %.1f/s; decode %d tokens, %.1f/s]\n",
               reply.prompt_tokens, reply.prompt_tokens / reply.prefill_seconds, reply.decode_steps,
               reply.decode_steps / reply.decode_seconds);
  if (reply.forked_tokens > 0) {
    std::fprintf(
        stderr, "[forked after the system prompt: %d tokens, which took %.0f ms, not read again]\n",
        reply.forked_tokens, 1e3 * reply.forked_seconds);
  }
}

void Converse(chat::ChatSession& session, int max_tokens) {
  const bool terminal = isatty(STDIN_FILENO);
  std::string line;
  while (std::cerr << (terminal ? "> " : "") && std::getline(std::cin, line) && line != "/quit") {
    if (line.empty()) continue;
    if (line == "/reset") {
      session.Reset();
      continue;
    }
    try {
      Answer(session, line, max_tokens);
    } catch (const std::length_error& error) {
      std::cerr << "[" << error.what() << " (/reset)]\n";
    }
  }
}

void Run(const Flags& flags, const char* argv0) {
  const auto gguf =
      chat::Gguf::Read(flags.tokenizer.empty() ? DefaultTokenizer(argv0) : flags.tokenizer);
  chat::CheckChatTemplate(gguf);
  const chat::Tokenizer tokenizer(gguf);
  chat::Llm model(flags.weights);
  chat::ChatSession session(model, tokenizer, flags.sampling, flags.system);
  if (flags.prompt) {
    Answer(session, *flags.prompt, flags.max_tokens);
  } else {
    Converse(session, flags.max_tokens);
  }
}

// Threads that wait for each other shall sleep, not spin: spinning ones make this program many
// times slower on a busy machine. OpenMP asks the environment before main() begins, hence the
// second start.
void SleepWhileWaiting(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY")) return;
  setenv("OMP_WAIT_POLICY", "passive", 1);
  execv("/proc/self/exe", argv);  // goes on here if it can't
}

}  // namespace

int main(int argc, char** argv) {
  SleepWhileWaiting(argv);
  try {
    const Flags flags = ParseFlags(argc, argv);
    if (flags.help) {
      std::cout << kHelp;
    } else {
      Run(flags, argv[0]);
    }
    return 0;
  } catch (const UsageError& error) {
    std::cerr << "cc_chat: " << error.what() << " (--help lists the flags)\n";
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "cc_chat: " << error.what() << "\n";
    return 1;
  }
}
