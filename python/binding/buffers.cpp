#include "buffers.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "on_device.hpp"

namespace nb = nanobind;

namespace paceline::binding {
namespace {

constexpr std::string_view kTypesText =
    "float64, float32, float16, bfloat16, int8 to int64, uint8 to uint64 and bool";

std::string class_of(nb::handle object) { return Py_TYPE(object.ptr())->tp_name; }

// Returns what Python prints for an attribute. Never throws: an error is being described already.
std::string text_of(nb::handle object, const char* attribute) {
  const nb::object value = nb::getattr(object, attribute, nb::none());
  const nb::object text = nb::steal(PyObject_Str(value.ptr()));
  const char* characters = text.is_valid() ? PyUnicode_AsUTF8(text.ptr()) : nullptr;
  if (!characters) PyErr_Clear();
  return characters ? characters : "?";
}

std::string element_of(nb::handle object) {
  return nb::hasattr(object, "dtype") ? text_of(object, "dtype") : class_of(object);
}

[[noreturn]] void unsupported(const Where& where, std::string_view type) {
  fail(Fault::usage, where.call, ": ", where.argument, " has elements of type ", type,
       "; Paceline combines and moves ", kTypesText,
       ". Convert it, or pass a view of such a type.");
}

[[noreturn]] void not_contiguous(const Where& where) {
  fail(Fault::usage, where.call, ": ", where.argument,
       " is not contiguous (row-major); Paceline works in place, on one stretch of memory. Pass a "
       "contiguous copy: numpy.ascontiguousarray(x) or x.contiguous().");
}

[[noreturn]] void no_buffer(const Where& where, nb::handle object) {
  fail(Fault::usage, where.call, ": ", where.argument, " is a ", class_of(object),
       "; it must be a numpy array, a torch tensor, or offer the buffer protocol, DLPack or "
       "__cuda_array_interface__.");
}

std::optional<Type> integer_of(std::size_t bytes, bool is_signed) {
  switch (bytes) {
    case 1: return is_signed ? Type::i8 : Type::u8;
    case 2: return is_signed ? Type::i16 : Type::u16;
    case 4: return is_signed ? Type::i32 : Type::u32;
    case 8: return is_signed ? Type::i64 : Type::u64;
    default: return {};
  }
}

// A format of the buffer protocol: a letter of the struct module, perhaps behind a byte order.
std::optional<Type> type_of(const Py_buffer& view) {
  std::string_view format = view.format ? view.format : "B";
  if (format.size() == 2 && (format[0] == '@' || format[0] == '=' || format[0] == '<'))
    format.remove_prefix(1);
  if (format.size() != 1) return {};
  const auto bytes = static_cast<std::size_t>(view.itemsize);
  switch (format[0]) {
    case 'd': return Type::f64;
    case 'f': return Type::f32;
    case 'e': return Type::f16;
    case '?': return Type::boolean;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n': return integer_of(bytes, true);
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N': return integer_of(bytes, false);
    default: return {};
  }
}

// The type in numpy's notation: "<f4".
std::optional<Type> type_of_letters(std::string_view letters) {
  if (letters.size() != 3 || letters[0] == '>') return {};
  const auto bytes = static_cast<std::size_t>(letters[2] - '0');
  switch (letters[1]) {
    case 'f':
      if (bytes == 8) return Type::f64;
      if (bytes == 4) return Type::f32;
      return bytes == 2 ? std::optional(Type::f16) : std::nullopt;
    case 'i': return integer_of(bytes, true);
    case 'u': return integer_of(bytes, false);
    case 'b': return bytes == 1 ? std::optional(Type::boolean) : std::nullopt;
    default: return {};
  }
}

std::optional<Type> type_of(const nb::dlpack::dtype& type) {
  using Code = nb::dlpack::dtype_code;
  const std::size_t bytes = type.bits / 8;
  if (type.lanes != 1) return {};
  switch (static_cast<Code>(type.code)) {
    case Code::Int: return integer_of(bytes, true);
    case Code::UInt: return integer_of(bytes, false);
    case Code::Bool: return bytes == 1 ? std::optional(Type::boolean) : std::nullopt;
    case Code::Bfloat: return bytes == 2 ? std::optional(Type::bf16) : std::nullopt;
    case Code::Float:
      if (bytes == 8) return Type::f64;
      if (bytes == 4) return Type::f32;
      return bytes == 2 ? std::optional(Type::f16) : std::nullopt;
    default: return {};
  }
}

// The attributes of torch in use, looked up when the first tensor comes. Never freed: the
// interpreter may be gone by then.
struct Torch {
  PyObject* tensor = nullptr;              // the class torch.Tensor
  std::array<PyObject*, kTypes> dtypes{};  // by Type; dtypes are singletons
  PyObject *is_cpu = nullptr, *dtype = nullptr, *is_contiguous = nullptr, *data_ptr = nullptr,
           *numel = nullptr;
};

// Returns null before torch is imported: then no object can be a tensor.
const Torch* torch() {
  static const Torch* loaded = nullptr;
  if (loaded) return loaded;
  PyObject* module = PyDict_GetItemString(PyImport_GetModuleDict(), "torch");
  if (!module || !PyObject_HasAttrString(module, "Tensor")) return nullptr;
  const nb::object owner = nb::borrow(module);
  auto* t = new Torch;
  t->tensor = nb::object(owner.attr("Tensor")).release().ptr();
  for (int i = 0; i < kTypes; ++i)
    t->dtypes[static_cast<std::size_t>(i)] =
        nb::object(owner.attr(std::string(name_of(static_cast<Type>(i))).c_str())).release().ptr();
  t->is_cpu = PyUnicode_InternFromString("is_cpu");
  t->dtype = PyUnicode_InternFromString("dtype");
  t->is_contiguous = PyUnicode_InternFromString("is_contiguous");
  t->data_ptr = PyUnicode_InternFromString("data_ptr");
  t->numel = PyUnicode_InternFromString("numel");
  return loaded = t;
}

nb::object call(nb::handle object, PyObject* method) {
  PyObject* const args[] = {object.ptr()};
  PyObject* result = PyObject_VectorcallMethod(method, args, 1, nullptr);
  if (!result) nb::raise_python_error();
  return nb::steal(result);
}

nb::object get(nb::handle object, PyObject* name) {
  PyObject* result = PyObject_GetAttr(object.ptr(), name);
  if (!result) nb::raise_python_error();
  return nb::steal(result);
}

bool is_contiguous(const nb::ndarray<nb::ro>& array) {
  std::int64_t expected = 1;
  for (std::size_t i = array.ndim(); i-- > 0;) {
    if (array.shape(i) == 0) return true;
    if (array.shape(i) != 1 && array.stride(i) != expected) return false;
    expected *= static_cast<std::int64_t>(array.shape(i));
  }
  return true;
}

}  // namespace

// Delegates, so that the destructor runs when the rest throws.
Buffer::Buffer(nb::handle object, const Where& where, Accepts accepts) : Buffer() {
  if (object.is_none()) return;
  object_ = nb::borrow(object);
  const Torch* t = torch();
  if (PyObject_CheckBuffer(object.ptr())) {
    from_view(where);
  } else if (t && PyObject_IsInstance(object.ptr(), t->tensor) == 1) {
    from_tensor(where);
  } else if (nb::hasattr(object, "__cuda_array_interface__")) {
    from_cuda_interface(where);
  } else {
    from_dlpack(where);
  }
  if (device_ != kOnHost && accepts == Accepts::host)
    fail(Fault::refusal, where.call, ": ", where.argument, " is on CUDA device ", device_,
         "; this call moves memory of the CPU only. Pass a copy on the CPU, and copy the result "
         "back.");
}

Buffer::Buffer(Buffer&& other) noexcept { *this = std::move(other); }

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this == &other) return *this;
  release();
  object_ = std::move(other.object_);
  view_ = std::exchange(other.view_, Py_buffer{});
  data_ = std::exchange(other.data_, nullptr);
  count_ = std::exchange(other.count_, 0);
  type_ = other.type_;
  read_only_ = other.read_only_;
  device_ = other.device_;
  stream_ = other.stream_;
  return *this;
}

Buffer Buffer::alias() const {
  Buffer other;
  other.object_ = object_;
  other.data_ = data_;
  other.count_ = count_;
  other.type_ = type_;
  other.read_only_ = read_only_;
  other.device_ = device_;
  other.stream_ = stream_;
  return other;
}

void Buffer::release() {
  if (view_.obj) PyBuffer_Release(&view_);
  object_.reset();
}

void Buffer::from_view(const Where& where) {
  if (PyObject_GetBuffer(object_.ptr(), &view_, PyBUF_STRIDES | PyBUF_FORMAT) != 0) {
    PyErr_Clear();  // dates, objects and the like have no format
    unsupported(where, element_of(object_));
  }
  const auto type = type_of(view_);
  if (!type) unsupported(where, element_of(object_));
  if (!PyBuffer_IsContiguous(&view_, 'C')) not_contiguous(where);
  type_ = *type;
  data_ = view_.buf;
  count_ = static_cast<std::size_t>(view_.len) / size_of(type_);
  read_only_ = view_.readonly != 0;
}

void Buffer::from_tensor(const Where& where) {
  const Torch& t = *torch();
  if (get(object_, t.is_cpu).ptr() != Py_True) {
    const nb::object place = object_.attr("device");
    if (text_of(place, "type") != "cuda")
      fail(Fault::refusal, where.call, ": ", where.argument, " is a tensor on ",
           text_of(object_, "device"),
           "; this build moves memory of the CPU and of CUDA devices. Pass x.cpu(), and copy the "
           "result back.");
    device_ = nb::cast<int>(place.attr("index"));
    const nb::object cuda = nb::module_::import_("torch.cuda");
    stream_ = nb::cast<std::uintptr_t>(cuda.attr("current_stream")(device_).attr("cuda_stream"));
  }
  const nb::object dtype = get(object_, t.dtype);
  std::size_t index = 0;
  while (index < t.dtypes.size() && t.dtypes[index] != dtype.ptr()) ++index;
  if (index == t.dtypes.size()) unsupported(where, text_of(object_, "dtype"));
  try {
    if (call(object_, t.is_contiguous).ptr() != Py_True) not_contiguous(where);
    data_ = reinterpret_cast<void*>(nb::cast<std::uintptr_t>(call(object_, t.data_ptr)));
    count_ = nb::cast<std::size_t>(call(object_, t.numel));
  } catch (nb::python_error& error) {  // sparse, meta and fake tensors have no memory of this kind
    fail(Fault::usage, where.call, ": ", where.argument, " is a tensor without plain memory (",
         error.what(), "). Pass a dense tensor.");
  }
  type_ = static_cast<Type>(index);
}

void Buffer::from_dlpack(const Where& where) {
  if (!nb::hasattr(object_, "__dlpack__")) no_buffer(where, object_);
  constexpr int kCpu = nb::device::cpu::value;
  const int device = nb::cast<int>(object_.attr("__dlpack_device__")()[0]);
  constexpr int kCuda = nb::device::cuda::value;
  if (device != kCpu && device != kCuda)
    fail(Fault::refusal, where.call, ": ", where.argument,
         " is in the memory of a device (DLPack type ", device,
         "); this build moves memory of the CPU and of CUDA devices. Pass a copy on the CPU.");
  nb::ndarray<> writable;
  nb::ndarray<nb::ro> array;
  if (nb::try_cast(object_, writable, false)) {
    array = nb::ndarray<nb::ro>(writable);
  } else if (nb::try_cast(object_, array, false)) {
    read_only_ = true;
  } else {
    no_buffer(where, object_);
  }
  const auto type = type_of(array.dtype());
  if (!type) unsupported(where, element_of(object_));
  if (!is_contiguous(array)) not_contiguous(where);
  type_ = *type;
  if (device == kCuda) device_ = array.device_id();
  data_ = const_cast<void*>(static_cast<const void*>(array.data()));
  count_ = array.size();
  // The array from DLPack owns the memory: it replaces the object that it came from.
  object_ = nb::capsule(new nb::ndarray<nb::ro>(std::move(array)), [](void* kept) noexcept {
    delete static_cast<nb::ndarray<nb::ro>*>(kept);
  });
}

// Version 3 of https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html. It does not
// name the device: the driver knows whose memory it is.
void Buffer::from_cuda_interface(const Where& where) try {
  const auto about = nb::cast<nb::dict>(object_.attr("__cuda_array_interface__"));
  const auto shape = nb::cast<std::vector<std::int64_t>>(about["shape"]);
  const auto letters = nb::cast<std::string>(about["typestr"]);
  const auto data = nb::cast<std::pair<std::uintptr_t, bool>>(about["data"]);
  const auto type = type_of_letters(letters);
  if (!type) unsupported(where, letters);
  type_ = *type;
  count_ = 1;
  for (std::int64_t length : shape) count_ *= static_cast<std::size_t>(length);
  if (about.contains("strides") && !about["strides"].is_none()) {
    const auto strides = nb::cast<std::vector<std::int64_t>>(about["strides"]);
    std::int64_t expected = static_cast<std::int64_t>(size_of(type_));
    for (std::size_t i = shape.size(); i-- > 0;) {
      if (count_ > 0 && shape[i] != 1 && strides[i] != expected) not_contiguous(where);
      expected *= shape[i];
    }
  }
  data_ = reinterpret_cast<void*>(data.first);
  read_only_ = data.second;
  device_ = count_ == 0 ? 0 : owner_of_cuda_memory(data_);
  if (about.contains("stream") && !about["stream"].is_none())
    stream_ = nb::cast<std::uintptr_t>(about["stream"]);
} catch (const nb::cast_error&) {
  fail(Fault::usage, where.call, ": ", where.argument, " has a __cuda_array_interface__ that is "
       "not one: shape, typestr and data, as its description has them.");
} catch (const nb::python_error& error) {
  fail(Fault::usage, where.call, ": ", where.argument, " has a __cuda_array_interface__ that "
       "cannot be read (", error.what(), ").");
}

}  // namespace paceline::binding
