// What bind.go needs of shim.c.
#ifndef DORYLUS_SHIM_H
#define DORYLUS_SHIM_H

#include "../include/cuda.h"

#pragma GCC visibility push(hidden)

// Loads the library at path, or where it is "" the first that loads of the usual
// ones, and keeps path. Returns whether there is one. To be called once.
int dorylus_cuda_load(const char *path);

// Runs the library's cuInit and fills the table where it succeeds. Returns its code.
int dorylus_cuda_start(void);

// Facts about the library.
const char *dorylus_cuda_library(void);      // its name, "" if none was loaded
const char *dorylus_cuda_dlerror(void);      // why the first of those tried was not
const char *dorylus_cuda_name(int i);        // of slot i, NULL after the last
int dorylus_cuda_has(const char *name);      // whether the library has that function
int dorylus_cuda_emulated(void);             // whether it says that it is the emulated device
int dorylus_cuda_version(void);              // of the driver, 12080 for 12.8; 0 if unknown

// Whether a library of that name loads.
int dorylus_loads(const char *name);

// cuFuncSetAttribute for the size of dynamic shared memory.
int dorylus_allow_shared(uintptr_t function, int bytes);

// Loads a module, an image that ends with a zero byte, and leaves what the
// compiler says in log, which has size bytes.
int dorylus_module_load(void *image, char *log, size_t size, uintptr_t *module);

#pragma GCC visibility pop

#endif
