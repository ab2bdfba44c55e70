// The test program's tools: entry points by name, checks, a device with one stream.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include <dlfcn.h>

static int seed, failures;
static std::string extra_settings;

struct Case {
  const char *name;
  void (*run)();
  Case *next;
};
static Case *cases;
struct Listed {
  Listed(Case *c) { c->next = cases, cases = c; }
};
#define CASE(name)                                    \
  static void case_##name();                          \
  static Case entry_##name{#name, case_##name, nullptr}; \
  static Listed listed_##name(&entry_##name);         \
  static void case_##name()

static const char *last_detail();

static void differs(int line, const std::string &what) {
  failures++;
  std::cout << "line " << line << ": " << what << " (seed " << seed << ", detail: " << last_detail() << ")" << std::endl;
  if (failures > 20) exit(1);
}

template <class T> std::string show(const T &v) {
  if constexpr (std::is_pointer_v<T>)
    return v ? "a pointer" : "null";
  else if constexpr (std::is_convertible_v<T, std::string>)
    return v;
  else
    return std::to_string(v);
}
template <class A, class B> void eq(int line, const char *text, const A &got, const B &want) {
  if (!(got == want)) differs(line, std::string(text) + " is " + show(got) + ", want " + show(want));
}
#define EQ(got, want) eq(__LINE__, #got, got, want)
#define IS(call, want) eq(__LINE__, #call, static_cast<int>(call), want)
#define OK(call) IS(call, 0)
#define CHECK(cond) \
  if (!(cond)) differs(__LINE__, #cond " does not hold")
#define HAS(text, part) \
  if (std::string(text).find(part) == std::string::npos) differs(__LINE__, "text lacks: " part_of(part))
#define part_of(p) +std::string(p)

struct Driver {
  void *lib;
  template <class F> void load(F &f, const char *name) {
    f = reinterpret_cast<F>(dlsym(lib, name));
    if (!f) {
      fprintf(stderr, "no %s: %s\n", name, dlerror());
      exit(2);
    }
  }
  decltype(&::cuInit) Init;
  decltype(&::cuDriverGetVersion) DriverGetVersion;
  decltype(&::cuDeviceGetCount) DeviceGetCount;
  decltype(&::cuDeviceGet) DeviceGet;
  decltype(&::cuDeviceGetName) DeviceGetName;
  decltype(&::cuDeviceGetAttribute) DeviceGetAttribute;
  decltype(&::cuDeviceTotalMem) DeviceTotalMem;
  decltype(&::cuDeviceCanAccessPeer) DeviceCanAccessPeer;
  decltype(&::cuDevicePrimaryCtxRetain) DevicePrimaryCtxRetain;
  decltype(&::cuDevicePrimaryCtxRelease) DevicePrimaryCtxRelease;
  decltype(&::cuDevicePrimaryCtxReset) DevicePrimaryCtxReset;
  decltype(&::cuCtxSetCurrent) CtxSetCurrent;
  decltype(&::cuCtxGetCurrent) CtxGetCurrent;
  decltype(&::cuCtxSynchronize) CtxSynchronize;
  decltype(&::cuCtxEnablePeerAccess) CtxEnablePeerAccess;
  decltype(&::cuCtxDisablePeerAccess) CtxDisablePeerAccess;
  decltype(&::cuModuleLoadData) ModuleLoadData;
  decltype(&::cuModuleLoadDataEx) ModuleLoadDataEx;
  decltype(&::cuModuleUnload) ModuleUnload;
  decltype(&::cuModuleGetFunction) ModuleGetFunction;
  decltype(&::cuFuncGetAttribute) FuncGetAttribute;
  decltype(&::cuFuncSetAttribute) FuncSetAttribute;
  decltype(&::cuLaunchKernel) LaunchKernel;
  decltype(&::cuMemGetInfo) MemGetInfo;
  decltype(&::cuMemAlloc) MemAlloc;
  decltype(&::cuMemFree) MemFree;
  decltype(&::cuMemHostAlloc) MemHostAlloc;
  decltype(&::cuMemFreeHost) MemFreeHost;
  decltype(&::cuMemcpyHtoD) MemcpyHtoD;
  decltype(&::cuMemcpyDtoH) MemcpyDtoH;
  decltype(&::cuMemcpyDtoD) MemcpyDtoD;
  decltype(&::cuMemcpyHtoDAsync) MemcpyHtoDAsync;
  decltype(&::cuMemcpyDtoHAsync) MemcpyDtoHAsync;
  decltype(&::cuMemcpyDtoDAsync) MemcpyDtoDAsync;
  decltype(&::cuMemcpyPeerAsync) MemcpyPeerAsync;
  decltype(&::cuMemcpy) Memcpy;
  decltype(&::cuMemsetD8) MemsetD8;
  decltype(&::cuMemsetD32) MemsetD32;
  decltype(&::cuMemsetD32Async) MemsetD32Async;
  decltype(&::cuStreamCreate) StreamCreate;
  decltype(&::cuStreamDestroy) StreamDestroy;
  decltype(&::cuStreamSynchronize) StreamSynchronize;
  decltype(&::cuStreamQuery) StreamQuery;
  decltype(&::cuStreamWaitEvent) StreamWaitEvent;
  decltype(&::cuEventCreate) EventCreate;
  decltype(&::cuEventDestroy) EventDestroy;
  decltype(&::cuEventRecord) EventRecord;
  decltype(&::cuEventQuery) EventQuery;
  decltype(&::cuEventSynchronize) EventSynchronize;
  decltype(&::cuEventElapsedTime) EventElapsedTime;
  decltype(&::cuGetErrorName) GetErrorName;
  decltype(&::cuGetErrorString) GetErrorString;
  CUresult (*MemHostRegister)(void *, size_t, unsigned);
  CUresult (*MemHostUnregister)(void *);
  CUresult (*FuncGetParamInfo)(CUfunction, size_t, size_t *, size_t *);
  CUresult (*LaunchHostFunc)(CUstream, CUhostFn, void *);
  const char *(*marker)();
  const char *(*kernels)();
  const char *(*kernel)(int);
  const char *(*signature)(const char *);
  int (*configure)(const char *);
  int64_t (*counter)(const char *);
  void (*counters_reset)();
  const char *(*detail)();
  const int *emulated;

  void open(const char *path) {
    lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!lib) {
      fprintf(stderr, "open %s: %s\n", path, dlerror());
      exit(2);
    }
#define PLAIN(name) load(name, "cu" #name)
#define V2(name) load(name, "cu" #name "_v2")
    PLAIN(Init); PLAIN(DriverGetVersion); PLAIN(DeviceGetCount); PLAIN(DeviceGet); PLAIN(DeviceGetName);
    PLAIN(DeviceGetAttribute); V2(DeviceTotalMem); PLAIN(DeviceCanAccessPeer); PLAIN(DevicePrimaryCtxRetain);
    V2(DevicePrimaryCtxRelease); V2(DevicePrimaryCtxReset); PLAIN(CtxSetCurrent); PLAIN(CtxGetCurrent);
    PLAIN(CtxSynchronize); PLAIN(CtxEnablePeerAccess); PLAIN(CtxDisablePeerAccess); PLAIN(ModuleLoadData);
    PLAIN(ModuleLoadDataEx); PLAIN(ModuleUnload); PLAIN(ModuleGetFunction); PLAIN(FuncGetAttribute);
    PLAIN(FuncSetAttribute); PLAIN(LaunchKernel); V2(MemGetInfo); V2(MemAlloc); V2(MemFree); PLAIN(MemHostAlloc);
    PLAIN(MemFreeHost); V2(MemcpyHtoD); V2(MemcpyDtoH); V2(MemcpyDtoD); V2(MemcpyHtoDAsync); V2(MemcpyDtoHAsync);
    V2(MemcpyDtoDAsync); PLAIN(MemcpyPeerAsync); PLAIN(Memcpy); V2(MemsetD8); V2(MemsetD32); PLAIN(MemsetD32Async);
    PLAIN(StreamCreate); V2(StreamDestroy); PLAIN(StreamSynchronize); PLAIN(StreamQuery); PLAIN(StreamWaitEvent);
    PLAIN(EventCreate); V2(EventDestroy); PLAIN(EventRecord); PLAIN(EventQuery); PLAIN(EventSynchronize);
    PLAIN(EventElapsedTime); PLAIN(GetErrorName); PLAIN(GetErrorString); V2(MemHostRegister); PLAIN(MemHostUnregister);
    PLAIN(FuncGetParamInfo); PLAIN(LaunchHostFunc);
#undef PLAIN
#undef V2
#define MARK(name) load(name, "dorylus_cuemu_" #name)
    MARK(marker); MARK(kernels); MARK(kernel); MARK(signature); MARK(configure); MARK(counter); MARK(counters_reset); MARK(detail);
#undef MARK
    emulated = static_cast<const int *>(dlsym(lib, "dorylus_cuda_emulated_device"));
  }
};
static Driver cu;
static const char *last_detail() { return cu.detail ? cu.detail() : ""; }

template <class T> uint64_t box(T v) {
  uint64_t b = 0;
  memcpy(&b, &v, sizeof v);
  return b;
}

// PTX enough for the emulated device: a head, and an entry for each kernel.
inline std::string image(const std::string &version = "7.0", const std::string &target = "sm_80") {
  std::string s = "//\n.version " + version + "\n.target " + target + "\n.address_size 64\n";
  for (const char *k : {"dk_axpy", "dk_types", "dk_nothing", "dk_block_sum", "dk_block_sum_wrong", "dk_half_barrier",
                        "dk_two_barriers", "dk_early_exit", "dk_stale", "dk_shuffles", "dk_lonely", "dk_outside_mask",
                        "dk_stranger", "dk_write", "dk_read", "dk_four", "dk_deep", "dk_divide", "dk_dynamic",
                        "dk_order", "dk_mma_tf", "dk_mma_bf", "dk_only_in_image"})
    s += std::string(".visible .entry ") + k + "()\n{\n}\n";
  return s;
}

inline void fresh(const std::string &settings = "") {
  if (cu.configure(("reset;seed=" + std::to_string(seed) + ";" + settings + ";" + extra_settings).c_str()))
    differs(__LINE__, "configure");
}

// One context, one module, one stream; a new emulated machine around it.
struct Device {
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUstream stream = nullptr;

  Device(const std::string &settings = "", bool keep = false, int ordinal = 0) {
    if (!keep) fresh(settings);
    OK(cu.Init(0));
    OK(cu.DevicePrimaryCtxRetain(&context, ordinal));
    OK(cu.CtxSetCurrent(context));
    OK(cu.ModuleLoadData(&module, image().c_str()));
    OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  }
  CUfunction function(const char *name) {
    for (auto &p : found)
      if (p.first == name) return p.second;
    CUfunction f = nullptr;
    OK(cu.ModuleGetFunction(&f, module, name));
    found.push_back({name, f});
    return f;
  }
  CUdeviceptr alloc(size_t n) {
    CUdeviceptr p = 0;
    OK(cu.MemAlloc(&p, n));
    return p;
  }
  CUdeviceptr put(const std::vector<float> &v) {
    CUdeviceptr p = alloc(v.size() * 4);
    OK(cu.MemcpyHtoD(p, v.data(), v.size() * 4));
    return p;
  }
  std::vector<float> get(CUdeviceptr p, size_t n) {
    std::vector<float> v(n, -1.0f);
    OK(cu.MemcpyDtoH(v.data(), p, n * 4));
    return v;
  }
  int launch(const char *name, int grid, int block, std::vector<uint64_t> args, unsigned shared = 0, CUstream on = nullptr) {
    std::vector<void *> params;
    for (uint64_t &a : args) params.push_back(&a);
    params.push_back(nullptr);
    return cu.LaunchKernel(function(name), static_cast<unsigned>(grid), 1, 1, static_cast<unsigned>(block), 1, 1, shared,
                           on ? on : stream, params.data(), nullptr);
  }
  int sync() { return cu.StreamSynchronize(stream); }

private:
  std::vector<std::pair<std::string, CUfunction>> found;
};
