// A program that feeds recorded inputs to a model and records the outputs.

#ifndef AOTI_RUNTIME_TESTING_REPLAY_H_
#define AOTI_RUNTIME_TESTING_REPLAY_H_

#include <optional>

#include "aoti/device_type.h"
#include "aoti/program_spec.h"

namespace aoti::testing {

// The body of main():
//
//   replay --in=cases.safetensors --out=results.safetensors [--weights=w.safetensors]
//   [--num_runners=N]
//
// `in` has tensors named "<call>/<input>", with calls numbered from 0; the calls run in order on
// one loaded model. `out` gets "<call>/<output>", and "<call>/<input>" for inputs that the model
// writes to.
//
// device: as in LoadOptions.
//
// Returns 0; 2 for wrong usage; 3 if the model reports an error, whose code and message are
// printed.
int ReplayMain(const ProgramSpec& spec, int argc, char** argv,
               std::optional<DeviceType> device = {});

}  // namespace aoti::testing

#endif  // AOTI_RUNTIME_TESTING_REPLAY_H_
