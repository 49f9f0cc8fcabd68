// The part of the CUDA driver's interface that Paceline uses: own declarations, loaded at first
// use.
//
// Nothing links against CUDA, and the build needs none of its headers. Numbers and layouts are
// those of cuda.h, which are stable; its macros map to the names with _v2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace paceline::device::cuda {

using Result = int;
using Device = int;
using Context = struct ContextBody*;
using Address = std::uintptr_t;   // CUdeviceptr
using StreamHandle = struct StreamBody*;
using EventHandle = struct EventBody*;
using Module = struct ModuleBody*;
using Function = struct FunctionBody*;
using GraphHandle = struct GraphBody*;
using GraphExec = struct GraphExecBody*;
struct IpcHandle {
  char bytes[64];
};

inline constexpr Result kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNoDevice = 100,
                        kNotReady = 600, kPeerAccessEnabled = 704, kHostMemoryRegistered = 712,
                        kAlreadyMapped = 208, kNoKernelImage = 209, kInvalidPtx = 218,
                        kUnsupportedPtx = 222;
inline constexpr int kLeastVersion = 12000;   // streams that wait for words, on every device

// CUdevice_attribute.
inline constexpr int kProcessors = 16, kPciBus = 33, kPciDevice = 34, kPciDomain = 50,
                     kMajor = 75, kMinor = 76;
inline constexpr int kPerformanceRank = 1;   // CUdevice_P2PAttribute
// CUpointer_attribute.
inline constexpr int kPointerMemoryType = 2, kPointerBuffer = 7, kPointerIsManaged = 8,
                     kPointerOrdinal = 9, kPointerRangeStart = 11, kPointerRangeSize = 12;
inline constexpr unsigned kDeviceMemory = 2;

// One line for each function: its name here, its name in the library, and its parameters.
#define PACELINE_CUDA_FUNCTIONS(F)                                                               \
  F(init, "cuInit", (unsigned flags))                                                            \
  F(driver_version, "cuDriverGetVersion", (int* version))                                        \
  F(error_name, "cuGetErrorName", (Result error, const char** name))                             \
  F(error_text, "cuGetErrorString", (Result error, const char** text))                           \
  F(device_count, "cuDeviceGetCount", (int* count))                                              \
  F(device_get, "cuDeviceGet", (Device * device, int ordinal))                                   \
  F(device_name, "cuDeviceGetName", (char* name, int length, Device device))                     \
  F(device_memory, "cuDeviceTotalMem_v2", (std::size_t * bytes, Device device))                  \
  F(device_attribute, "cuDeviceGetAttribute", (int* value, int attribute, Device device))        \
  F(can_access_peer, "cuDeviceCanAccessPeer", (int* can, Device device, Device peer))            \
  F(peer_attribute, "cuDeviceGetP2PAttribute",                                                   \
    (int* value, int attribute, Device device, Device peer))                                     \
  F(retain_context, "cuDevicePrimaryCtxRetain", (Context * context, Device device))              \
  F(set_context, "cuCtxSetCurrent", (Context context))                                           \
  F(get_context, "cuCtxGetCurrent", (Context * context))                                         \
  F(enable_peer, "cuCtxEnablePeerAccess", (Context peer, unsigned flags))                        \
  F(memory_info, "cuMemGetInfo_v2", (std::size_t * free, std::size_t* total))                    \
  F(allocate, "cuMemAlloc_v2", (Address * memory, std::size_t bytes))                            \
  F(release, "cuMemFree_v2", (Address memory))                                                   \
  F(allocate_host, "cuMemHostAlloc", (void** memory, std::size_t bytes, unsigned flags))         \
  F(release_host, "cuMemFreeHost", (void* memory))                                               \
  F(register_host, "cuMemHostRegister_v2", (void* memory, std::size_t bytes, unsigned flags))    \
  F(unregister_host, "cuMemHostUnregister", (void* memory))                                      \
  F(host_address, "cuMemHostGetDevicePointer_v2",                                                \
    (Address * address, void* memory, unsigned flags))                                           \
  F(pointer_attribute, "cuPointerGetAttribute", (void* value, int attribute, Address memory))    \
  F(make_stream, "cuStreamCreate", (StreamHandle * stream, unsigned flags))                      \
  F(release_stream, "cuStreamDestroy_v2", (StreamHandle stream))                                 \
  F(synchronize_stream, "cuStreamSynchronize", (StreamHandle stream))                            \
  F(stream_context, "cuStreamGetCtx", (StreamHandle stream, Context * context))                  \
  F(make_event, "cuEventCreate", (EventHandle * event, unsigned flags))                          \
  F(release_event, "cuEventDestroy_v2", (EventHandle event))                                     \
  F(record, "cuEventRecord", (EventHandle event, StreamHandle stream))                           \
  F(query_event, "cuEventQuery", (EventHandle event))                                            \
  F(synchronize_event, "cuEventSynchronize", (EventHandle event))                                \
  F(wait_event, "cuStreamWaitEvent", (StreamHandle stream, EventHandle event, unsigned flags))   \
  F(write_word, "cuStreamWriteValue32_v2",                                                       \
    (StreamHandle stream, Address word, std::uint32_t value, unsigned flags))                    \
  F(wait_word, "cuStreamWaitValue32_v2",                                                         \
    (StreamHandle stream, Address word, std::uint32_t value, unsigned flags))                    \
  F(copy, "cuMemcpyAsync", (Address to, Address from, std::size_t bytes, StreamHandle stream))   \
  F(copy_peer, "cuMemcpyPeerAsync",                                                              \
    (Address to, Context to_context, Address from, Context from_context, std::size_t bytes,      \
     StreamHandle stream))                                                                       \
  F(load_module, "cuModuleLoadData", (Module * module, const void* image))                       \
  F(get_function, "cuModuleGetFunction", (Function * function, Module module, const char* name)) \
  F(launch_kernel, "cuLaunchKernel",                                                             \
    (Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,     \
     unsigned block_y, unsigned block_z, unsigned shared_bytes, StreamHandle stream,             \
     void** parameters, void** extra))                                                           \
  F(begin_capture, "cuStreamBeginCapture_v2", (StreamHandle stream, int mode))                   \
  F(end_capture, "cuStreamEndCapture", (StreamHandle stream, GraphHandle * graph))               \
  F(instantiate, "cuGraphInstantiateWithFlags",                                                  \
    (GraphExec * exec, GraphHandle graph, unsigned long long flags))                             \
  F(launch_graph, "cuGraphLaunch", (GraphExec exec, StreamHandle stream))                        \
  F(release_exec, "cuGraphExecDestroy", (GraphExec exec))                                        \
  F(release_graph, "cuGraphDestroy", (GraphHandle graph))                                        \
  F(export_memory, "cuIpcGetMemHandle", (IpcHandle * handle, Address memory))                    \
  F(import_memory, "cuIpcOpenMemHandle_v2", (Address * memory, IpcHandle handle, unsigned flags)) \
  F(close_memory, "cuIpcCloseMemHandle", (Address memory))

struct Api {
#define PACELINE_CUDA_MEMBER(name, symbol, parameters) Result(*name) parameters = nullptr;
  PACELINE_CUDA_FUNCTIONS(PACELINE_CUDA_MEMBER)
#undef PACELINE_CUDA_MEMBER
  int version = 0;   // of the driver: 12040 is 12.4
};

// Loads libcuda.so.1, once. Returns null if it cannot be used; `why` then tells what is missing,
// and the remedy.
const Api* api(std::string* why = nullptr);

// "CUDA_ERROR_INVALID_VALUE (1): invalid argument".
std::string describe(const Api& api, Result error);

}  // namespace paceline::device::cuda
