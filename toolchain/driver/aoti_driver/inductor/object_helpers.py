"""The C++ that makes a program's objects of custom classes when it gets its constants.

The class that Inductor generated gets a derived class. Its instances share the objects: an object
exists as long as an instance has the state that it was made of.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from aoti_driver.contract.code_parts import ProgramConstant
from aoti_driver.program.objects import LOAD, UNLOAD, CustomObject

_CODE = """

namespace aoti_dispatch {{
namespace {{

// Keeps an object; see aoti/custom_class_objects.h.
class KeptObject {{
 public:
  KeptObject(const char* class_name, std::string_view name, AtenTensorHandle state)
      : class_name_(class_name) {{
    AtenTensorHandle reference = nullptr;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_new_tensor_handle(state, &reference));
    state_ = RAIIAtenTensorHandle(reference);
    StableIValue stack[] = {{Tensor(state_), Text(name)}};
    Call(class_name, "{load}", stack);
  }}
  ~KeptObject() {{
    AtenTensorHandle reference = nullptr;
    if (aoti_torch_new_tensor_handle(state_, &reference) != AOTI_TORCH_SUCCESS) return;
    StableIValue stack[] = {{Pack(reference)}};
    aoti_torch_call_dispatcher(class_name_, "{unload}", stack);
  }}
  KeptObject(const KeptObject&) = delete;
  KeptObject& operator=(const KeptObject&) = delete;

 private:
  const char* const class_name_;
  RAIIAtenTensorHandle state_;
}};

}}  // namespace
}}  // namespace aoti_dispatch

namespace torch::aot_inductor {{

class {derived} : public {model_class} {{
 public:
  using {model_class}::{model_class};

  void update_constants_array(std::shared_ptr<std::vector<ConstantHandle>> constants) {{
    std::vector<std::unique_ptr<aoti_dispatch::KeptObject>> objects;
{objects}
    {model_class}::update_constants_array(std::move(constants));
    objects_.swap(objects);
  }}

 private:
  std::vector<std::unique_ptr<aoti_dispatch::KeptObject>> objects_;
}};

}}  // namespace torch::aot_inductor
"""

_OBJECT = """\
    objects.push_back(std::make_unique<aoti_dispatch::KeptObject>(
        "{found.class_name}", "{found.name}", (*constants)[{index}]));"""


@dataclasses.dataclass(frozen=True)
class ObjectConstant:
    """An object, and which of the program's constants is its state."""

    object: CustomObject
    index: int


def constants_of(
    found: Sequence[CustomObject], constants: Sequence[ProgramConstant]
) -> list[ObjectConstant]:
    """Inductor leaves out objects whose methods' results are not used."""
    indices = {constant.source: i for i, constant in enumerate(constants)}
    return [ObjectConstant(one, indices[one.name]) for one in found if one.name in indices]


def class_name(model_class: str) -> str:
    return f"{model_class}_with_objects"


def model_with_objects(model_class: str, objects: Sequence[ObjectConstant]) -> str:
    texts = [_OBJECT.format(found=one.object, index=one.index) for one in objects]
    return _CODE.format(
        load=LOAD,
        unload=UNLOAD,
        derived=class_name(model_class),
        model_class=model_class,
        objects="\n".join(texts),
    )
