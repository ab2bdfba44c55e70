// Runs one case against the emulated device, as a program that opened the driver's
// library would: driver LIBRARY CASE SEED. Prints what differs; exit status 1 if anything.
#include "driver.h"

#include <algorithm>
#include <cmath>

// What threads compute.

CASE(axpy) {
  Device d;
  const int n = 1000;
  std::vector<float> x(n), y(n);
  for (int i = 0; i < n; i++) x[i] = static_cast<float>(i), y[i] = 1;
  auto dx = d.put(x), dy = d.put(y);
  OK(d.launch("dk_axpy", 4, 256, {box(2.0f), dx, dy, box(int64_t{n})}));
  OK(d.sync());
  auto got = d.get(dy, n);
  for (int i = 0; i < n; i++) EQ(got[i], 2.0f * i + 1);
}

CASE(types) {
  Device d;
  auto out = d.alloc(64);
  OK(d.launch("dk_types", 1, 1, {box(int32_t{-7}), box(int64_t{-8}), uint64_t{1} << 63, box(9.0f), out}));
  OK(d.sync());
  std::vector<uint64_t> v(4);
  OK(cu.MemcpyDtoH(v.data(), out, 32));
  EQ(v[0], static_cast<uint64_t>(-7));
  EQ(v[1], static_cast<uint64_t>(-8));
  EQ(v[2], uint64_t{1} << 63);
  EQ(v[3], uint64_t{9});
  EQ(std::string(cu.signature("dk_types")), "ilufp");
  int known = 0;
  for (; cu.kernel(known); known++) CHECK(cu.signature(cu.kernel(known)));
  EQ(known, 22);
  EQ(cu.signature("dk_none"), static_cast<const char *>(nullptr));
}

CASE(block_sum) {
  Device d;
  std::vector<float> x(256 * 5);
  for (size_t i = 0; i < x.size(); i++) x[i] = static_cast<float>(i);
  auto dx = d.put(x), out = d.alloc(5 * 4);
  OK(d.launch("dk_block_sum", 5, 256, {dx, out}));
  OK(d.sync());
  auto got = d.get(out, 5);
  for (int b = 0; b < 5; b++) EQ(got[b], 256.0f * 256 * b + 255 * 128);
}

// A removed barrier must show in most blocks, and not only in the first.
CASE(missing_barrier) {
  Device d;
  const int blocks = 40;
  std::vector<float> x(256 * blocks, 1.0f);
  auto dx = d.put(x), out = d.alloc(blocks * 4);
  OK(d.launch("dk_block_sum_wrong", blocks, 256, {dx, out}));
  OK(d.sync());
  int wrong = 0;
  for (float v : d.get(out, blocks)) wrong += v != 256.0f;
  CHECK(wrong > blocks / 2);
}

CASE(poison) {
  Device d;
  auto out = d.alloc(6 * 4);
  OK(d.launch("dk_stale", 6, 32, {out}));
  OK(d.sync());
  for (float v : d.get(out, 6)) CHECK(std::isnan(v));
  auto fresh = d.alloc(4096);
  for (float v : d.get(fresh, 1024)) CHECK(std::isnan(v));
}

CASE(shuffles) {
  Device d;
  std::vector<float> x(32);
  for (int i = 0; i < 32; i++) x[i] = static_cast<float>(i * i);
  auto dx = d.put(x), all = d.alloc(128), eight = d.alloc(128), shift = d.alloc(128), vote = d.alloc(128);
  OK(d.launch("dk_shuffles", 1, 32, {dx, all, eight, shift, vote}));
  OK(d.sync());
  auto a = d.get(all, 32), e = d.get(eight, 32), s = d.get(shift, 32);
  std::vector<uint32_t> v(32);
  OK(cu.MemcpyDtoH(v.data(), vote, 128));
  uint32_t thirds = 0;
  for (int i = 0; i < 32; i += 3) thirds |= uint32_t{1} << i;
  for (int l = 0; l < 32; l++) {
    float sum = 0;
    for (int i = l & 24; i < (l & 24) + 8; i++) sum += x[i];
    EQ(a[l], 10416.0f);
    EQ(e[l], sum + 100 * x[(l & 24) + 3]);
    EQ(s[l], l + 5 < 32 ? x[l + 5] : x[l]);
    EQ(v[l], thirds);
  }
}

static void mma(const char *kernel, int k) {
  Device d;
  std::vector<float> a(16 * k), b(k * 8);
  for (size_t i = 0; i < a.size(); i++) a[i] = static_cast<float>(static_cast<int>(i * 7 % 23) - 11);
  for (size_t i = 0; i < b.size(); i++) b[i] = static_cast<float>(static_cast<int>(i * 5 % 17) - 8);
  auto da = d.put(a), db = d.put(b), dd = d.alloc(16 * 8 * 4);
  OK(d.launch(kernel, 1, 32, {da, db, dd}));
  OK(d.sync());
  auto got = d.get(dd, 128);
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < 8; j++) {
      float want = 0;
      for (int q = 0; q < k; q++) want += a[i * k + q] * b[q * 8 + j];
      EQ(got[i * 8 + j], want);
    }
}
CASE(mma) {
  mma("dk_mma_tf", 8);
  mma("dk_mma_bf", 16);
}

CASE(dynamic_shared) {
  Device d;
  const int n = 20000;
  auto out = d.alloc(n * 4);
  IS(d.launch("dk_dynamic", 1, 64, {out, box(int32_t{n})}, n * 4), 1); // over 48 KiB needs to be asked for
  OK(cu.FuncSetAttribute(d.function("dk_dynamic"), CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, n * 4));
  OK(d.launch("dk_dynamic", 1, 64, {out, box(int32_t{n})}, n * 4));
  OK(d.sync());
  EQ(d.get(out, n)[0], float{n - 1});
  OK(d.launch("dk_dynamic", 1, 64, {out, box(int32_t{n})}, n * 4 - 256)); // past its end
  IS(d.sync(), 700);
}

// Order comes from the seed, and from it alone.
CASE(order) {
  auto order = [] {
    Device d;
    auto next = d.alloc(4), out = d.alloc(4 * 128 * 4);
    OK(cu.MemsetD32(next, 0, 1));
    OK(d.launch("dk_order", 4, 128, {next, out}));
    OK(d.sync());
    std::vector<int32_t> v(512);
    OK(cu.MemcpyDtoH(v.data(), out, 4 * 512));
    return v;
  };
  auto a = order(), b = order();
  CHECK(a == b);
  std::string other = "seed=" + std::to_string(seed + 1);
  extra_settings = other;
  auto c = order();
  CHECK(a != c);
  std::sort(c.begin(), c.end());
  for (int i = 0; i < 512; i++) EQ(c[i], i);
}

// What ends a launch.

constexpr uint64_t kOut = ~uint64_t{0}; // stands for the output

static void breaks(const char *kernel, int block, std::vector<uint64_t> args, int status, const char *text) {
  Device d;
  auto out = d.alloc(4096);
  for (auto &a : args)
    if (a == kOut) a = out;
  OK(d.launch(kernel, 3, block, args));
  IS(d.sync(), status);
  HAS(cu.detail(), text);
  // The context is lost: every call says so.
  CUdeviceptr p;
  IS(cu.MemAlloc(&p, 4), status);
  IS(cu.MemFree(out), status);
  IS(cu.CtxSynchronize(), status);
}

CASE(divergent) {
  breaks("dk_half_barrier", 64, {box(int32_t{5})}, 719, "has ended");
  breaks("dk_two_barriers", 64, {box(int32_t{5})}, 719, "at line");
  breaks("dk_early_exit", 64, {box(int32_t{60})}, 719, "divergent barrier in dk_early_exit");
  breaks("dk_lonely", 64, {kOut}, 719, "divergent warp operation");
  breaks("dk_lonely", 16, {kOut}, 719, "lanes that do not exist");
  breaks("dk_outside_mask", 32, {kOut}, 719, "leaves out the calling lane");
}

CASE(stranger) {
  Device d;
  auto out = d.alloc(128);
  OK(d.launch("dk_stranger", 1, 32, {out}));
  OK(d.sync());
  for (float v : d.get(out, 16)) CHECK(std::isnan(v));
}

CASE(bad_access) {
  breaks("dk_write", 64, {0, 0}, 700, "null pointer");
  breaks("dk_write", 64, {kOut, box(int64_t{1024 + 1024})}, 700, "dk_write, block");
  breaks("dk_write", 64, {kOut, box(int64_t{-1000})}, 700, "4000 bytes before an allocation of 4096 bytes");
  breaks("dk_read", 64, {kOut, box(int64_t{1} << 40), kOut}, 700, "bad access");
  breaks("dk_four", 32, {kOut, box(int64_t{1}), kOut}, 716, "misaligned");
  breaks("dk_deep", 1, {kOut}, 719, "stack of more than");
#if defined(__x86_64__) // arm64 divides by zero without a trap
  breaks("dk_divide", 1, {box(int32_t{1}), 0, kOut}, 719, "division");
#endif
}

// A byte past the end: at the guard page, or within the page, found afterwards.
CASE(one_past) {
  for (size_t n : {1u, 7u, 64u, 1000u, 1024u, 5000u}) {
    Device d;
    auto p = d.alloc(n * 4);
    OK(d.launch("dk_write", 1, 1, {p, box(static_cast<int64_t>(n - 1))}));
    OK(d.sync());
    OK(d.launch("dk_write", 1, 1, {p, box(static_cast<int64_t>(n))}));
    IS(d.sync(), 700);
    Device e;
    p = e.alloc(n * 4);
    OK(e.launch("dk_write", 1, 1, {p, box(int64_t{-1})}));
    IS(e.sync(), 700);
  }
}

CASE(use_after_free) {
  Device d;
  auto p = d.alloc(4096), q = d.alloc(4096);
  OK(d.launch("dk_write", 1, 1, {p, 0}));
  OK(cu.MemFree(p)); // too early: the kernel has not run
  IS(d.sync(), 700);
  HAS(cu.detail(), "freed");
  Device e;
  p = e.alloc(4096), q = e.alloc(4096);
  OK(cu.MemFree(p));
  OK(e.launch("dk_write", 1, 1, {p, 0}));
  IS(e.sync(), 700);
  HAS(cu.detail(), "freed");
  (void)q;
}

CASE(arguments) {
  Device d;
  auto p = d.alloc(4096);
  float host = 0;
  auto bad = [&](std::vector<uint64_t> args, const char *text) {
    IS(d.launch("dk_axpy", 1, 32, args), 1);
    HAS(cu.detail(), text);
  };
  bad({p, p, p, box(int64_t{4})}, "argument 0 of type f");
  bad({box(int32_t{3}), p, p, box(int64_t{4})}, "rather an integer");
  bad({box(1.0f), reinterpret_cast<uintptr_t>(&host), p, 4}, "argument 1 of type p");
  bad({box(1.0f), 4, p, 4}, "argument 1 of type p");
  bad({box(1.0f), p, p, p}, "argument 3 of type l");
  bad({box(1.0f), p, p}, "3 arguments, it takes 4"); // the harness ends the list with NULL
  uint64_t a = box(1.0f), x = p;
  void *few[] = {&a, &x, reinterpret_cast<void *>(0x1234567), nullptr}; // junk where the third should be
  IS(cu.LaunchKernel(d.function("dk_axpy"), 1, 1, 1, 32, 1, 1, 0, d.stream, few, nullptr), 1);
  HAS(cu.detail(), "2 arguments, it takes 4");
  OK(cu.configure("terminated=1"));
  bad({box(1.0f), p, p, 4, 5}, "more than 4 arguments");
  IS(d.launch("dk_half_barrier", 1, 32, {p}), 1);
  OK(d.launch("dk_nothing", 1, 32, {}));
  OK(d.launch("dk_nothing", 1, 1024, {}));
  IS(d.launch("dk_nothing", 1, 1025, {}), 1);
  IS(d.launch("dk_nothing", 0, 32, {}), 1);
  OK(d.sync());
  // The packed form tells the exact size.
  struct {
    float a;
    CUdeviceptr x, y;
    int64_t n;
  } packed{1, p, p, 4};
  size_t size = sizeof packed;
  void *extra[] = {reinterpret_cast<void *>(1), &packed, reinterpret_cast<void *>(2), &size, nullptr};
  OK(cu.LaunchKernel(d.function("dk_axpy"), 1, 1, 1, 32, 1, 1, 0, d.stream, nullptr, extra));
  size -= 8;
  IS(cu.LaunchKernel(d.function("dk_axpy"), 1, 1, 1, 32, 1, 1, 0, d.stream, nullptr, extra), 1);
  size_t offset, bytes;
  OK(cu.FuncGetParamInfo(d.function("dk_axpy"), 3, &offset, &bytes));
  EQ(offset, size_t{24});
  EQ(bytes, size_t{8});
  IS(cu.FuncGetParamInfo(d.function("dk_axpy"), 4, &offset, &bytes), 1);
}

#include "driver_api.h"

int main(int argc, char **argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: driver LIBRARY CASE SEED\n");
    return 2;
  }
  seed = atoi(argv[3]);
  cu.open(argv[1]);
  for (Case *c = cases; c; c = c->next)
    if (!strcmp(c->name, argv[2])) {
      c->run();
      return failures ? 1 : 0;
    }
  fprintf(stderr, "no case %s; there are:\n", argv[2]);
  for (Case *c = cases; c; c = c->next) printf("%s\n", c->name);
  return 2;
}
