// Cases of streams, memory, devices, faults and settings; included by driver.cc.

// Work runs when it is waited for, and copies read host memory then.
CASE(late) {
  Device d;
  std::vector<float> x(16, 1.0f);
  auto p = d.alloc(64);
  void *staging;
  OK(cu.MemHostAlloc(&staging, 64, 0));
  memcpy(staging, x.data(), 64);
  OK(cu.MemcpyHtoDAsync(p, staging, 64, d.stream));
  EQ(cu.counter("work_pending"), int64_t{1});
  CHECK(std::isnan(d.get(p, 16)[0])); // a read that does not wait sees what was there before
  static_cast<float *>(staging)[0] = 5; // staging reused too early shows
  OK(d.sync());
  EQ(d.get(p, 16)[0], 5.0f);
  EQ(cu.counter("pageable_copies"), int64_t{0});
  OK(cu.MemcpyHtoDAsync(p, x.data(), 64, d.stream));
  EQ(cu.counter("pageable_copies"), int64_t{1});
  OK(cu.MemHostRegister(x.data(), 64, 0));
  IS(cu.MemHostRegister(x.data(), 64, 0), 712);
  OK(cu.MemcpyDtoHAsync(x.data(), p, 64, d.stream));
  EQ(cu.counter("pageable_copies"), int64_t{1});
  OK(d.sync());
  OK(cu.MemHostUnregister(x.data()));
  IS(cu.MemHostUnregister(x.data()), 713);
  // Staging that is gone by the time it is read.
  OK(cu.MemcpyHtoDAsync(p, staging, 64, d.stream));
  OK(cu.MemFreeHost(staging));
  IS(d.sync(), 700);
}

// Two streams: without an event the other's work has not run; with one, just that has.
CASE(events) {
  Device d;
  CUstream copy;
  CUevent ready, never;
  OK(cu.StreamCreate(&copy, CU_STREAM_NON_BLOCKING));
  OK(cu.EventCreate(&ready, CU_EVENT_DISABLE_TIMING));
  OK(cu.EventCreate(&never, 0));
  auto p = d.alloc(4), q = d.alloc(4), r = d.alloc(4);
  OK(cu.MemsetD32Async(p, 7, 1, copy));
  OK(cu.MemcpyDtoDAsync(q, p, 4, d.stream)); // no event between them
  OK(d.sync());
  uint32_t v;
  OK(cu.MemcpyDtoH(&v, q, 4));
  EQ(v, 0xffffffffu);
  OK(cu.EventRecord(ready, copy));
  OK(cu.MemsetD32Async(r, 8, 1, copy)); // behind the event: not waited for
  OK(cu.StreamWaitEvent(d.stream, ready, 0));
  OK(cu.MemcpyDtoDAsync(q, p, 4, d.stream));
  OK(d.sync());
  OK(cu.MemcpyDtoH(&v, q, 4));
  EQ(v, 7u);
  OK(cu.MemcpyDtoH(&v, r, 4));
  EQ(v, 0xffffffffu);
  OK(cu.EventQuery(ready));
  OK(cu.EventQuery(never));
  OK(cu.StreamWaitEvent(d.stream, never, 0));
  // A wait means the record before it, not a later one.
  OK(cu.MemsetD32Async(p, 9, 1, copy));
  OK(cu.EventRecord(ready, copy));
  OK(cu.StreamWaitEvent(d.stream, ready, 0));
  OK(cu.MemsetD32Async(p, 10, 1, copy));
  OK(cu.EventRecord(ready, copy));
  OK(cu.MemcpyDtoDAsync(q, p, 4, d.stream));
  OK(d.sync());
  OK(cu.MemcpyDtoH(&v, q, 4));
  EQ(v, 9u);
  OK(cu.EventSynchronize(ready));
  OK(cu.MemcpyDtoH(&v, p, 4));
  EQ(v, 10u);
  // A stream destroyed with work in it still does the work.
  OK(cu.MemsetD32Async(p, 11, 1, copy));
  OK(cu.EventRecord(ready, copy));
  OK(cu.StreamDestroy(copy));
  IS(cu.StreamSynchronize(copy), 400);
  OK(cu.EventSynchronize(ready));
  OK(cu.MemcpyDtoH(&v, p, 4));
  EQ(v, 11u);
  OK(cu.EventDestroy(ready));
  IS(cu.EventSynchronize(ready), 400);
}

// Staging on the device that is filled again too early: late work hides it, early work
// shows it, and the missing event mends it.
CASE(early) {
  auto last = [](const char *settings, bool wait) {
    Device d(settings);
    CUstream copy;
    CUevent filled, read;
    OK(cu.StreamCreate(&copy, CU_STREAM_NON_BLOCKING));
    OK(cu.EventCreate(&filled, 0));
    OK(cu.EventCreate(&read, 0));
    auto buffer = d.alloc(4), out = d.alloc(80);
    for (unsigned i = 0; i < 20; i++) {
      if (wait) OK(cu.StreamWaitEvent(copy, read, 0));
      OK(cu.MemsetD32Async(buffer, i, 1, copy));
      OK(cu.EventRecord(filled, copy));
      OK(cu.StreamWaitEvent(d.stream, filled, 0));
      OK(cu.MemcpyDtoDAsync(out + 4 * i, buffer, 4, d.stream));
      OK(cu.EventRecord(read, d.stream));
    }
    OK(d.sync());
    std::vector<unsigned> v(20);
    OK(cu.MemcpyDtoH(v.data(), out, 80));
    int wrong = 0;
    for (unsigned i = 0; i < 20; i++) wrong += v[i] != i;
    return wrong;
  };
  EQ(last("", false), 0);
  CHECK(last("early=70", false) > 0);
  EQ(last("early=70", true), 0);
  EQ(last("early=100", true), 0);
}

// Whoever polls sees "not ready", then an end.
CASE(polling) {
  Device d;
  CUevent e, f;
  float ms = -1;
  OK(cu.EventCreate(&e, 0));
  OK(cu.EventCreate(&f, 0));
  auto p = d.alloc(4);
  OK(cu.EventRecord(e, d.stream));
  OK(cu.MemsetD32Async(p, 1, 1, d.stream));
  OK(cu.EventRecord(f, d.stream));
  IS(cu.EventElapsedTime(&ms, e, f), 600);
  IS(cu.StreamQuery(d.stream), 600);
  IS(cu.EventQuery(f), 600);
  int polls = 0;
  while (cu.EventQuery(f) == CUDA_ERROR_NOT_READY && polls < 100) polls++;
  CHECK(polls > 0 && polls < 100);
  OK(cu.StreamQuery(d.stream));
  OK(cu.EventElapsedTime(&ms, e, f));
  CHECK(ms >= 0);
}

CASE(whole_context) {
  Device d;
  std::vector<CUstream> s(4);
  std::vector<CUdeviceptr> p;
  for (auto &h : s) {
    OK(cu.StreamCreate(&h, CU_STREAM_NON_BLOCKING));
    p.push_back(d.alloc(4));
    OK(cu.MemsetD32Async(p.back(), 3, 1, h));
  }
  OK(cu.CtxSynchronize());
  for (auto q : p) {
    uint32_t v = 0;
    OK(cu.MemcpyDtoH(&v, q, 4));
    EQ(v, 3u);
  }
  int calls = 0;
  OK(cu.LaunchHostFunc(s[0], [](void *n) { ++*static_cast<int *>(n); }, &calls));
  EQ(calls, 0);
  OK(cu.CtxSynchronize());
  EQ(calls, 1);
}

CASE(refused) {
  Device d;
  auto p = d.alloc(64);
  float v = 0;
  CUstream s;
  CUevent e;
  OK(cu.EventCreate(&e, 0));
  IS(cu.StreamCreate(&s, 0), 1);
  for (CUstream zero : {CUstream{}, reinterpret_cast<CUstream>(1), reinterpret_cast<CUstream>(2)}) {
    IS(cu.LaunchKernel(d.function("dk_nothing"), 1, 1, 1, 1, 1, 1, 0, zero, nullptr, nullptr), 400);
    IS(cu.MemcpyHtoDAsync(p, &v, 4, zero), 400);
    IS(cu.MemsetD32Async(p, 0, 1, zero), 400);
    IS(cu.StreamSynchronize(zero), 400);
    IS(cu.EventRecord(e, zero), 400);
  }
  HAS(cu.detail(), "default streams are refused");
  IS(cu.MemcpyHtoD(p + 61, &v, 4), 1);
  IS(cu.MemcpyDtoH(&v, p + 64, 4), 1);
  IS(cu.MemcpyHtoD(reinterpret_cast<uintptr_t>(&v), &v, 4), 1);
  IS(cu.MemcpyHtoD(p, reinterpret_cast<void *>(p), 4), 1);
  IS(cu.MemFree(p + 4), 1);
  OK(cu.MemFree(p));
  IS(cu.MemFree(p), 1);
  OK(cu.CtxSetCurrent(nullptr));
  CUdeviceptr q;
  IS(cu.MemAlloc(&q, 4), 201);
}

CASE(images) {
  fresh();
  CUmodule m;
  CUfunction f;
  IS(cu.ModuleLoadData(&m, image().c_str()), 3);
  Device d("", true);
  IS(cu.ModuleGetFunction(&f, d.module, "dk_absent"), 500);
  IS(cu.ModuleGetFunction(&f, d.module, "dk_only_in_image"), 500);
  OK(cu.ModuleLoadData(&m, ".version 7.0\n.target sm_80\n.visible .entry dk_axpyx(\n"));
  IS(cu.ModuleGetFunction(&f, m, "dk_axpy"), 500);
  IS(cu.ModuleLoadData(&m, image("8.0", "sm_90").c_str()), 209);
  IS(cu.ModuleLoadData(&m, image("8.9").c_str()), 222);
  OK(cu.configure("driver=11000;cc=7.0"));
  IS(cu.ModuleLoadData(&m, image("7.0", "sm_80").c_str()), 209);
  OK(cu.ModuleLoadData(&m, image("7.0", "sm_70").c_str()));
  IS(cu.ModuleLoadData(&m, image("7.1", "sm_70").c_str()), 222);
  char log[128] = "";
  CUjit_option keys[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, reinterpret_cast<void *>(sizeof log)};
  IS(cu.ModuleLoadDataEx(&m, "nonsense", 2, keys, values), 218);
  HAS(log, "ptxas");
  OK(cu.ModuleUnload(d.module));
  IS(cu.ModuleUnload(d.module), 400);
}

CASE(devices) {
  fresh("devices=3;memory=65536;cc=9.0;driver=12020");
  int n, v;
  IS(cu.DeviceGetCount(&n), 3); // before cuInit
  OK(cu.Init(0));
  OK(cu.Init(0));
  OK(cu.DeviceGetCount(&n));
  EQ(n, 3);
  OK(cu.DriverGetVersion(&v));
  EQ(v, 12020);
  CUdevice dev;
  OK(cu.DeviceGet(&dev, 2));
  IS(cu.DeviceGet(&dev, 3), 101);
  char name[64];
  OK(cu.DeviceGetName(name, 64, 2));
  HAS(name, "emulated");
  OK(cu.DeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 1));
  EQ(v, 9);
  OK(cu.DeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 1));
  CHECK(v > 0);
  size_t total, left;
  OK(cu.DeviceTotalMem(&total, 1));
  EQ(total, size_t{65536});
  // Each device's memory is its own, and limited.
  Device a("", true, 0);
  CUdeviceptr p = a.alloc(60000), q = 0;
  IS(cu.MemAlloc(&q, 6000), 2);
  OK(cu.MemGetInfo(&left, &total));
  EQ(left, size_t{5536});
  Device b("", true, 1);
  q = b.alloc(60000);
  OK(cu.MemGetInfo(&left, &total));
  EQ(left, size_t{5536});
  EQ(cu.counter("memory_live"), int64_t{120000});
  // Without peer access the other's memory is out of reach.
  OK(cu.DeviceCanAccessPeer(&v, 1, 0));
  EQ(v, 1);
  uint32_t word = 0;
  IS(cu.MemcpyDtoH(&word, p, 4), 1);
  OK(cu.CtxEnablePeerAccess(a.context, 0));
  IS(cu.CtxEnablePeerAccess(a.context, 0), 704);
  OK(b.launch("dk_write", 1, 1, {p, 0}));
  OK(b.sync());
  OK(cu.MemcpyPeerAsync(q, b.context, p, a.context, 4, b.stream));
  OK(b.sync());
  EQ(b.get(q, 1)[0], 1.0f);
  EQ(cu.counter("bytes_between_devices"), int64_t{4});
  OK(cu.CtxDisablePeerAccess(a.context));
  IS(cu.CtxDisablePeerAccess(a.context), 705);
  OK(b.launch("dk_write", 1, 1, {p, 0}));
  IS(b.sync(), 700);
  HAS(cu.detail(), "peer access");
  // The other device goes on.
  OK(cu.CtxSetCurrent(a.context));
  OK(a.launch("dk_write", 1, 1, {p, 1}));
  OK(a.sync());
  OK(cu.DevicePrimaryCtxReset(1));
  EQ(cu.counter("memory_live"), int64_t{60000});
  OK(cu.DevicePrimaryCtxRelease(0));
  EQ(cu.counter("memory_live"), int64_t{0});
  EQ(cu.counter("contexts_live"), int64_t{0});
  EQ(cu.counter("streams_live"), int64_t{0});
  EQ(cu.counter("modules_live"), int64_t{0});
  IS(cu.CtxSynchronize(), 201);
  fresh("devices=0");
  IS(cu.Init(0), 100);
  fresh("devices=2;peer=0");
  Device c("", true, 0), e("", true, 1);
  OK(cu.DeviceCanAccessPeer(&v, 1, 0));
  EQ(v, 0);
  IS(cu.CtxEnablePeerAccess(c.context, 0), 217);
}

CASE(counters) {
  Device d;
  auto p = d.put(std::vector<float>(100));
  auto q = d.alloc(400);
  OK(d.launch("dk_axpy", 1, 128, {box(1.0f), p, q, 100}));
  OK(d.launch("dk_nothing", 1, 1, {}));
  EQ(cu.counter("launches"), int64_t{0});
  OK(d.sync());
  OK(cu.MemcpyDtoD(q, p, 200));
  d.get(q, 50);
  EQ(cu.counter("launches"), int64_t{2});
  EQ(cu.counter("launches/dk_axpy"), int64_t{1});
  EQ(cu.counter("launches/dk_order"), int64_t{0});
  EQ(cu.counter("bytes_to_device"), int64_t{400});
  EQ(cu.counter("bytes_to_host"), int64_t{200});
  EQ(cu.counter("bytes_on_device"), int64_t{200});
  EQ(cu.counter("allocations_live"), int64_t{2});
  OK(cu.MemFree(p));
  EQ(cu.counter("memory_live"), int64_t{400});
  EQ(cu.counter("memory_peak"), int64_t{800});
  EQ(cu.counter("calls/cuMemAlloc"), int64_t{2});
  cu.counters_reset();
  EQ(cu.counter("memory_peak"), int64_t{400});
  EQ(cu.counter("launches"), int64_t{0});
  EQ(cu.counter("nonsense"), int64_t{-1});
  HAS(cu.marker(), "emulated");
  CHECK(cu.emulated && *cu.emulated == 1);
  HAS(cu.marker(), cu.kernels());
}

// Faults on demand, by call and count.
CASE(faults) {
  {
    Device d("fault=cuMemAlloc@2:2;fault=cuStreamSynchronize@2+:999");
    CUdeviceptr p;
    OK(cu.MemAlloc(&p, 4));
    IS(cu.MemAlloc(&p, 4), 2);
    OK(cu.MemAlloc(&p, 4));
    OK(d.sync());
    IS(d.sync(), 999);
    IS(cu.MemFree(p), 999); // the context is lost
  }
  {
    Device d("fault=kernel@2:719"); // the launch returns, a later call reports
    OK(d.launch("dk_nothing", 1, 1, {}));
    OK(d.launch("dk_nothing", 1, 1, {}));
    IS(d.sync(), 719);
    IS(d.launch("dk_nothing", 1, 1, {}), 719);
    EQ(cu.counter("launches"), int64_t{1});
  }
  {
    Device d("fault=dk_axpy:700;fault=copy@2:214");
    OK(d.launch("dk_nothing", 1, 1, {}));
    OK(d.sync());
    auto p = d.alloc(8);
    std::vector<float> v(2);
    OK(cu.MemcpyHtoD(p, v.data(), 8));
    IS(cu.MemcpyHtoD(p, v.data(), 8), 214);
  }
  {
    Device d("fault=cuModuleGetFunction:500;fault=cuLaunchKernel:slow/1");
    CUfunction f;
    IS(cu.ModuleGetFunction(&f, d.module, "dk_axpy"), 500);
    OK(cu.ModuleGetFunction(&f, d.module, "dk_axpy"));
    OK(d.launch("dk_nothing", 1, 1, {}));
  }
  for (int status : {3, 34, 46, 100, 209, 218, 222, 302, 303, 803, 804}) {
    fresh("fault=cuInit:" + std::to_string(status));
    IS(cu.Init(0), status);
    const char *name = nullptr, *text = nullptr;
    OK(cu.GetErrorName(static_cast<CUresult>(status), &name));
    OK(cu.GetErrorString(static_cast<CUresult>(status), &text));
    HAS(name, "CUDA_ERROR_");
    CHECK(text && *text);
  }
  for (const char *wrong : {"fault=cuInit", "fault=cuInit:x", "fault=cuInit@0:2", "devices=99", "devices=x", "cc=8", "speed=9"})
    IS(cu.configure(wrong), 1);
}

// The cases from here on are for cuemu_test.go, which looks at how they end.

CASE(environment) {
  int n = 0;
  OK(cu.Init(0));
  OK(cu.DeviceGetCount(&n));
  EQ(n, 5);
}

CASE(init_only) {
  CUresult r = cu.Init(0);
  printf("cuInit: %d, %s\n", static_cast<int>(r), cu.detail());
}

CASE(hash) { printf("%s\n", cu.kernels()); }

// A fault outside device work is none of the emulated device's business.
CASE(own_fault) {
  Device d;
  auto p = d.alloc(4);
  OK(d.launch("dk_write", 1, 1, {p, box(int64_t{1} << 30)}));
  IS(d.sync(), 700);
  fflush(stdout);
  *reinterpret_cast<volatile int *>(p + (1 << 24)) = 1;
}
