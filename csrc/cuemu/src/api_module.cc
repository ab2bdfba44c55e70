/* Modules, functions, launches. */
#include "device.h"
#include "fiber.h"

#include <algorithm>
#include <cstdio>

using namespace dk;

/* The number behind "key" at the start of a line of PTX, e.g. 8.0 or sm_80; -1 if absent. */
static bool directive(const std::string &ptx, const char *format, int *a, int *b) {
  for (size_t at = 0; at < ptx.size(); at = ptx.find('\n', at) + 1) {
    if (sscanf(ptx.c_str() + at, format, a, b) == (b ? 2 : 1)) return true;
    if (ptx.find('\n', at) == std::string::npos) break;
  }
  return false;
}

/* Judges an image as a driver would: 0, or the status. */
static CUresult judge(const std::string &image) {
  const std::string ptx = image.substr(0, 4096);
  const Settings &s = driver().set;
  int major, minor, sm;
  if (!directive(ptx, " .version %d.%d", &major, &minor) || !directive(ptx, " .target sm_%d", &sm, nullptr))
    return fail(CUDA_ERROR_INVALID_PTX, "ptxas: no .version and .target in the image");
  const int newest = (s.driver / 1000 - 4) * 10 + s.driver % 1000 / 10; /* CUDA 12.x reads up to PTX 8.x */
  if (major * 10 + minor > newest)
    return fail(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "ptxas: PTX %d.%d, this driver reads up to %d.%d", major, minor, newest / 10, newest % 10);
  if (sm > s.major * 10 + s.minor)
    return fail(CUDA_ERROR_NO_BINARY_FOR_GPU, "PTX for sm_%d, the device has compute capability %d.%d", sm, s.major, s.minor);
  return CUDA_SUCCESS;
}

static CUresult load(CUmodule *module, const void *image, Context *ctx) {
  if (!module || !image) return fail(CUDA_ERROR_INVALID_VALUE, "cuModuleLoadData: null argument");
  auto m = std::make_unique<Module>();
  m->context = ctx;
  m->image = static_cast<const char *>(image);
  if (CUresult r = judge(m->image)) return r;
  *module = driver().modules.add(std::move(m));
  return CUDA_SUCCESS;
}

DK_API cuModuleLoadData(CUmodule *module, const void *image) {
  DK_CALL(Current);
  return load(module, image, call.ctx);
}

DK_API cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int n, CUjit_option *options, void **values) {
  DK_CALL(Current);
  CUresult r = load(module, image, call.ctx);
  char *log = nullptr;
  size_t size = 0;
  for (unsigned i = 0; i < n; i++) {
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER) log = static_cast<char *>(values[i]);
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) size = static_cast<size_t>(reinterpret_cast<uintptr_t>(values[i]) & 0xffffffff);
  }
  if (log && size) snprintf(log, size, "%s", r ? detail().c_str() : "");
  return r;
}

DK_API cuModuleUnload(CUmodule module) {
  DK_CALL(Current);
  Driver &d = driver();
  Module *m = d.modules.get(module);
  if (!m) return fail(CUDA_ERROR_INVALID_HANDLE, "%s: no such module", __func__);
  auto &f = d.functions.all();
  for (auto it = f.begin(); it != f.end();) it = it->second->module == m ? f.erase(it) : std::next(it);
  d.modules.take(module);
  return CUDA_SUCCESS;
}

/* Whether the image has this kernel. */
static bool entry(const std::string &ptx, const std::string &name) {
  const std::string key = ".entry " + name;
  for (size_t at = ptx.find(key); at != std::string::npos; at = ptx.find(key, at + 1)) {
    char next = at + key.size() < ptx.size() ? ptx[at + key.size()] : ' ';
    if (next == '(' || next == ' ' || next == '\n') return true;
  }
  return false;
}

DK_API cuModuleGetFunction(CUfunction *func, CUmodule module, const char *name) {
  DK_CALL(Current);
  Module *m = driver().modules.get(module);
  if (!m) return fail(CUDA_ERROR_INVALID_HANDLE, "%s: no such module", __func__);
  const Kernel *k = kernels();
  while (k && strcmp(k->name, name)) k = k->next;
  if (!k) return fail(CUDA_ERROR_NOT_FOUND, "%s: no kernel %s in the emulated device's sources", __func__, name);
  if (!entry(m->image, name)) return fail(CUDA_ERROR_NOT_FOUND, "%s: no kernel %s in the image", __func__, name);
  auto f = std::make_unique<Function>();
  f->module = m;
  f->kernel = k;
  f->dynamic = 48 << 10;
  *func = driver().functions.add(std::move(f));
  return CUDA_SUCCESS;
}

DK_API cuFuncGetAttribute(int *value, CUfunction_attribute attrib, CUfunction func) {
  DK_CALL(Current);
  Function *f = driver().functions.get(func);
  if (!f) return fail(CUDA_ERROR_INVALID_HANDLE, "%s: no such function", __func__);
  const Settings &s = driver().set;
  switch (static_cast<int>(attrib)) {
  case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; break;
  case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = static_cast<int>(static_shared(f->kernel)); break;
  case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = 32; break;
  case CU_FUNC_ATTRIBUTE_PTX_VERSION:
  case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = s.major * 10 + s.minor; break;
  case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *value = f->dynamic; break;
  default: *value = 0;
  }
  return CUDA_SUCCESS;
}

DK_API cuFuncSetAttribute(CUfunction func, CUfunction_attribute attrib, int value) {
  DK_CALL(Current);
  Function *f = driver().functions.get(func);
  if (!f) return fail(CUDA_ERROR_INVALID_HANDLE, "%s: no such function", __func__);
  if (static_cast<int>(attrib) == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    if (value < 0 || value > 99 << 10)
      return fail(CUDA_ERROR_INVALID_VALUE, "%s: %d bytes of dynamic shared memory, at most %d", __func__, value, 99 << 10);
    f->dynamic = value;
  }
  return CUDA_SUCCESS;
}

DK_API cuFuncSetCacheConfig(CUfunction func, CUfunc_cache) {
  DK_CALL(Current);
  if (!driver().functions.get(func)) return fail(CUDA_ERROR_INVALID_HANDLE, "%s: no such function", __func__);
  return CUDA_SUCCESS;
}

DK_API cuFuncGetParamInfo(CUfunction func, size_t index, size_t *offset, size_t *size) {
  DK_CALL(Current);
  Function *f = driver().functions.get(func);
  if (!f) return fail(CUDA_ERROR_INVALID_HANDLE, "%s: no such function", __func__);
  size_t at = 0;
  for (size_t i = 0; f->kernel->types[i]; i++) {
    const char t = f->kernel->types[i];
    const size_t n = t == 'i' || t == 'f' ? 4 : 8;
    at = (at + n - 1) / n * n;
    if (i == index) {
      if (offset) *offset = at;
      if (size) *size = n;
      return CUDA_SUCCESS;
    }
    at += n;
  }
  return fail(CUDA_ERROR_INVALID_VALUE, "%s: %s has no parameter %zu", __func__, f->kernel->name, index);
}

DK_API cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction func, int blockSize, size_t) {
  DK_CALL(Current);
  if (!driver().functions.get(func)) return fail(CUDA_ERROR_INVALID_HANDLE, "%s: no such function", __func__);
  if (blockSize < 1 || blockSize > 1024) return fail(CUDA_ERROR_INVALID_VALUE, "%s: block of %d threads", __func__, blockSize);
  *blocks = std::min(32, 2048 / blockSize);
  return CUDA_SUCCESS;
}

/* Judges argument i of op by its type and box; a bad address shows when the kernel runs.
 * A kernel that is given some rows of a matrix gets the address at which row 0 would lie,
 * where there may be nothing: only accesses fault there. */
static CUresult check(Op &op, size_t i, const Context *ctx) {
  const Kernel *k = op.launch.kernel;
  const uint64_t box = op.launch.args[i];
  const Memory &mem = driver().memory;
  const uint32_t low = static_cast<uint32_t>(box), high = static_cast<uint32_t>(box >> 32);
  auto wrong = [&](const char *why) {
    return fail(CUDA_ERROR_INVALID_VALUE, "launch %s: argument %zu of type %c is 0x%llx: %s", k->name, i, k->types[i],
                static_cast<unsigned long long>(box), why);
  };
  auto later = [&](const char *why) {
    op.late = CUDA_ERROR_ILLEGAL_ADDRESS;
    op.late_text = std::string(k->name) + ": argument " + std::to_string(i) + ": " + why;
    return CUDA_SUCCESS;
  };
  switch (k->types[i]) {
  case 'p': {
    if (!box) return CUDA_SUCCESS;
    const Region *r = mem.find(box);
    if (!r) return mem.ours(box) ? CUDA_SUCCESS : wrong("neither device nor pinned memory");
    if (r->kind == Kind::Device && r->device != ctx->device && !ctx->peers.count(r->device))
      return later("memory of another device without peer access");
    return CUDA_SUCCESS;
  }
  case 'i':
    return high == 0 || (high == 0xffffffff && low >> 31) ? CUDA_SUCCESS : wrong("more than 32 bits");
  case 'f': {
    if (high) return wrong("more than 32 bits");
    const bool tiny = (low & 0x7f800000) == 0 && (low & 0x7fffff) != 0;
    return tiny ? wrong("a denormal float: rather an integer") : CUDA_SUCCESS;
  }
  case 'l':
    return box && mem.ours(box) ? wrong("an address") : CUDA_SUCCESS;
  }
  return CUDA_SUCCESS;
}

/* Reads the arguments from extra, a buffer laid out like the kernel's parameters. */
static CUresult unpack(Op &op, void **extra) {
  const char *buffer = nullptr;
  const size_t *size = nullptr;
  for (; *extra; extra += 2) {
    if (reinterpret_cast<uintptr_t>(*extra) == 1) buffer = static_cast<const char *>(extra[1]);
    if (reinterpret_cast<uintptr_t>(*extra) == 2) size = static_cast<const size_t *>(extra[1]);
  }
  if (!buffer || !size) return fail(CUDA_ERROR_INVALID_VALUE, "launch %s: extra without buffer and size", op.launch.kernel->name);
  size_t at = 0;
  for (const char *t = op.launch.kernel->types; *t; t++) {
    const size_t n = *t == 'i' || *t == 'f' ? 4 : 8;
    at = (at + n - 1) / n * n;
    if (at + n > *size) break;
    uint64_t box = 0;
    memcpy(&box, buffer + at, n);
    op.launch.args.push_back(box);
    at += n;
  }
  const size_t want = strlen(op.launch.kernel->types);
  if (op.launch.args.size() != want || at != *size)
    return fail(CUDA_ERROR_INVALID_VALUE, "launch %s: %zu bytes of arguments do not fit its %zu parameters", op.launch.kernel->name, *size, want);
  return CUDA_SUCCESS;
}

/* Reads n boxes. A caller that passes fewer leaves junk behind them: bad addresses are
 * caught, so that they end in a status. */
static CUresult gather(Op &op, void **params, size_t n) {
  struct Read {
    Op *op;
    void **params;
    size_t n, done;
  } read{&op, params, n, 0};
  op.launch.args.resize(n);
  locate_with(nullptr);
  int status = guarded(
      [](void *p) {
        Read *r = static_cast<Read *>(p);
        for (; r->done < r->n && r->params[r->done]; r->done++) memcpy(&r->op->launch.args[r->done], r->params[r->done], 8);
      },
      &read);
  if (status || read.done < n)
    return fail(CUDA_ERROR_INVALID_VALUE, "launch %s: %zu arguments, it takes %zu", op.launch.kernel->name, read.done, n);
  if (driver().set.terminated && params[n])
    return fail(CUDA_ERROR_INVALID_VALUE, "launch %s: more than %zu arguments", op.launch.kernel->name, n);
  return CUDA_SUCCESS;
}

DK_API cuLaunchKernel(CUfunction func, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,
                      unsigned int bz, unsigned int shared, CUstream stream, void **params, void **extra) {
  DK_CALL(Current);
  Function *f = driver().functions.get(func);
  if (!f || f->module->context != call.ctx) return fail(CUDA_ERROR_INVALID_HANDLE, "launch: no such function in this context");
  const Kernel *k = f->kernel;
  Stream *s = driver().streams.get(stream);
  if (!s || s->context != call.ctx)
    return fail(CUDA_ERROR_INVALID_HANDLE, "launch %s: stream %p is none of this context; the default streams are refused", k->name, static_cast<void *>(stream));
  if (gy != 1 || gz != 1 || by != 1 || bz != 1)
    return fail(CUDA_ERROR_INVALID_VALUE, "launch %s: grid %ux%ux%u of %ux%ux%u threads, kernels are one-dimensional", k->name, gx, gy, gz, bx, by, bz);
  if (gx < 1 || gx > 0x7fffffff || bx < 1 || bx > 1024)
    return fail(CUDA_ERROR_INVALID_VALUE, "launch %s: %u blocks of %u threads", k->name, gx, bx);
  if (shared > static_cast<unsigned>(f->dynamic))
    return fail(CUDA_ERROR_INVALID_VALUE, "launch %s: %u bytes of dynamic shared memory, at most %d are allowed to it", k->name, shared, f->dynamic);
  Op op{Do::Kernel};
  op.launch = {k, {}, static_cast<int32_t>(gx), static_cast<int32_t>(bx), shared};
  const size_t n = strlen(k->types);
  if (params) {
    if (CUresult r = gather(op, params, n)) return r;
  } else if (extra) {
    if (CUresult r = unpack(op, extra)) return r;
  } else if (n) {
    return fail(CUDA_ERROR_INVALID_VALUE, "launch %s: no arguments, it takes %zu", k->name, n);
  }
  for (size_t i = 0; i < n; i++)
    if (CUresult r = check(op, i, call.ctx)) return r;
  enqueue(s, std::move(op));
  return CUDA_SUCCESS;
}
