// A model in a file of its own, because its class has the name of another one's in this binary.

#ifndef TESTS_MANY_MODELS_SAME_NAME_H_
#define TESTS_MANY_MODELS_SAME_NAME_H_

#include <string_view>

// What //tests/many_models:affineV2 makes of this number; that it failed: 0, and a message.
float AnswerOfTheOther(float x);
std::string_view ProvenanceOfTheOther();

#endif  // TESTS_MANY_MODELS_SAME_NAME_H_
