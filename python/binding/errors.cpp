// Errors: Fault by Fault, the classes of python/paceline/errors.py.
#include <exception>

#include "base/error.hpp"
#include "binding.hpp"

namespace nb = nanobind;

namespace paceline::binding {
namespace {

const char* class_of(Fault fault) {
  switch (fault) {
    case Fault::usage: return "UsageError";
    case Fault::refusal: return "RefusalError";
    case Fault::mismatch: return "MismatchError";
    case Fault::timeout: return "TimeoutError";
    case Fault::lost: return "RankLost";
    case Fault::resource: return "ResourceError";
    case Fault::internal: return "InternalError";
  }
  return "Error";
}

void translate(const std::exception_ptr& thrown, void* /*payload*/) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    const nb::object type = nb::module_::import_("paceline.errors").attr(class_of(error.fault()));
    PyErr_SetString(type.ptr(), error.what());
  }
}

}  // namespace

void bind_errors(nb::module_& /*m*/) {
  nb::module_::import_("paceline.errors");  // a broken installation shows now, not in an error
  nb::register_exception_translator(translate);
}

}  // namespace paceline::binding
