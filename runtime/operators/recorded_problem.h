// What is wrong with a library of operators, for the step that loads it: see recorded.cc.

#ifndef AOTI_RUNTIME_OPERATORS_RECORDED_PROBLEM_H_
#define AOTI_RUNTIME_OPERATORS_RECORDED_PROBLEM_H_

#include <string>

namespace aoti::operators {

// where: the place in the source, "ops/scale.cc:12".
void NoteProblem(const std::string& where, const std::string& problem);

}  // namespace aoti::operators

#endif  // AOTI_RUNTIME_OPERATORS_RECORDED_PROBLEM_H_
