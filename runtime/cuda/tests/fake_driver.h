// A libcuda.so.1 for tests: its devices are memory of this process, it runs the kernels of
// test_kernels.cc as C++ functions, and tests say what it has and which call fails.

#ifndef AOTI_RUNTIME_CUDA_TESTS_FAKE_DRIVER_H_
#define AOTI_RUNTIME_CUDA_TESTS_FAKE_DRIVER_H_

#include <cstddef>
#include <map>
#include <string>

namespace aoti::testing {

struct FakeDriver {
  // What tests set.
  int version = 12040;
  int devices = 1;
  int arch = 80;
  bool takes_cubins = true;  // else they are refused as made for another device
  std::size_t memory = std::size_t{1} << 30;
  std::string failing;  // the function that fails with "an illegal memory access ..."

  // What tests look at.
  std::size_t bytes = 0;  // allocated
  int blocks = 0;         // allocated
  int allocations = 0;    // all that ever were
  int uploads = 0;
  int modules = 0;
  int streams = 0;
  int contexts = 0;  // references
  int pushed = 0;    // contexts on this thread
  int launches = 0;
  int waits = 0;                      // for all work
  std::map<void*, int> stream_waits;  // for the work of a stream
  void* launched_on = nullptr;        // the stream of the last launch
  int loads_of_ptx = 0;
  std::string launched;  // the last kernel, "add_row 2x1x1, 128 threads, 64 bytes shared"
};

}  // namespace aoti::testing

#endif  // AOTI_RUNTIME_CUDA_TESTS_FAKE_DRIVER_H_
