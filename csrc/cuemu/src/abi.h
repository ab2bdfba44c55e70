/* The types and numbers of the driver's API, CUDA 12, that the emulated device uses. */
#pragma once

#include <cstddef>
#include <cstdint>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;

namespace dk {

enum : CUresult {
  Success = 0,
  InvalidValue = 1,
  OutOfMemory = 2,
  NotInitialized = 3,
  NoDevice = 100,
  InvalidDevice = 101,
  InvalidImage = 200,
  InvalidContext = 201,
  NoBinaryForGPU = 209,
  PeerAccessUnsupported = 217,
  InvalidPTX = 218,
  UnsupportedPTXVersion = 222,
  InvalidHandle = 400,
  NotFound = 500,
  NotReady = 600,
  IllegalAddress = 700,
  LaunchOutOfResources = 701,
  PeerAccessAlreadyEnabled = 704,
  PeerAccessNotEnabled = 705,
  ContextIsDestroyed = 709,
  MemoryAlreadyRegistered = 712,
  MemoryNotRegistered = 713,
  NotSupported = 801,
};

} // namespace dk
