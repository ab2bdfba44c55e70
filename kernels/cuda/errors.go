package cuda

import (
	"errors"
	"fmt"
	"slices"
)

// Codes of the driver that decide what happens next.
const (
	codeOutOfMemory  = 2
	codeNoDevice     = 100
	codeIncomplete   = 302
	codeNoLibrary    = 303
	codeNotReady     = 600
	codePeerEnabled  = 704
	codeIllegal      = 700
	codeLaunchFailed = 719
)

// An explanation is what people are told about an error of the driver.
type explanation struct {
	codes []int
	say   string // what it means
	next  string // what to do about it
}

const (
	installDriver = "install NVIDIA's driver, or start the container with access to the GPU (docker run --gpus all)"
	updateDriver  = "update NVIDIA's driver"
	checkKernels  = "run dorylus-engine devices --selftest, which tells whether the device or a kernel is at fault"
	otherGPU      = "choose another GPU"
)

// explanations is the table of errors. What is not in it is shown with the driver's own
// words.
var explanations = []explanation{
	{[]int{codeNoLibrary}, "the driver's library is missing or cannot be loaded", installDriver},
	{[]int{codeIncomplete}, "the driver's library is incomplete", "install or update NVIDIA's driver (CUDA 11 or newer)"},
	{[]int{34}, "the library is the stub that the CUDA toolkit links with, not a driver", "take the toolkit's stubs folder off LD_LIBRARY_PATH, or name the driver in DORYLUS_CUDA_DRIVER"},
	{[]int{codeNoDevice}, "there is a driver, but no device", "give the container access to the GPU; see whether CUDA_VISIBLE_DEVICES is empty or names a GPU that is not there"},
	{[]int{101}, "there is no device of that number", "see dorylus-engine devices for those that there are; CUDA_VISIBLE_DEVICES renumbers them"},
	{[]int{803, 804}, "the driver in the kernel and its library differ", "reboot, or update NVIDIA's driver and its libraries together"},
	{[]int{802}, "the system is not ready: on machines with NVSwitch the fabric manager does not run", "start nvidia-fabricmanager of the driver's version"},
	{[]int{304}, "the operating system refused what the driver asked for, often for want of /dev/nvidia-uvm", "load the module nvidia-uvm on the host (nvidia-modprobe -u), or start the container with access to the GPU"},
	{[]int{222}, "the kernels are newer than the driver", updateDriver},
	{[]int{221}, "the driver's compiler for kernels is missing", "install the driver's library libnvidia-ptxjitcompiler"},
	{[]int{218}, "the driver rejects the kernels", "report it, with the compiler's text"},
	{[]int{209}, "there are no kernels for this GPU", "use a GPU of compute capability 7.0 or newer"},
	{[]int{codeOutOfMemory}, "the device's memory is used up", "use less of it: --gpu-memory, --precision=bf16, or more GPUs"},
	{[]int{46}, "another process has taken the device for itself", otherGPU + " (--gpu), or end the process that nvidia-smi shows"},
	{[]int{214}, "the device's memory is faulty (uncorrectable ECC error)", otherGPU + " (--gpu) and go on from the checkpoint; reset or replace this one"},
	{[]int{codeIllegal, 715, 716, 717, 718, codeLaunchFailed}, "a kernel failed, and the device's context is lost", checkKernels},
	{[]int{702}, "a kernel ran into the time limit of a device that drives a display", otherGPU + ", or turn the display's limit off"},
	{[]int{999}, "the driver failed for reasons of its own", checkKernels + "; the kernel's log (dmesg) may say more"},
}

// Error is a failed call of the driver.
type Error struct {
	Op     string // what was being done: "cuInit", "allocate 3 MiB on cuda:0"
	Code   int    // the driver's
	Detail string // what else is known, such as the driver's or the compiler's text; may be ""
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: %s; %s", e.Op, e.Reason(), e.Next())
}

// Reason is what it means, with code and detail: "there is a driver, but no device
// (CUDA error 100)".
func (e *Error) Reason() string {
	say := "the driver reports an error"
	if x := explain(e.Code); x != nil {
		say = x.say
	}
	if e.Detail == "" {
		return fmt.Sprintf("%s (CUDA error %d)", say, e.Code)
	}
	return fmt.Sprintf("%s (CUDA error %d: %s)", say, e.Code, e.Detail)
}

// Next is what to do about it.
func (e *Error) Next() string {
	if x := explain(e.Code); x != nil {
		return x.next
	}
	return "look the code up among the CUresult values of the CUDA driver API"
}

// Lost says whether the context is of no use after this error: all that lies on the
// device is gone for this process.
func (e *Error) Lost() bool {
	switch e.Code {
	case 214, 220, codeIllegal, 702, 709, 710, 714, 715, 716, 717, 718, codeLaunchFailed, 999:
		return true
	}
	return false
}

// TryAgain says whether a run may succeed elsewhere or later from its checkpoint: the
// device is faulty, not the program.
func (e *Error) TryAgain() bool { return e.Code == 214 || e.Code == 220 || e.Code == 46 }

// codeOf is the driver's code of an error, 0 if it is not the driver's.
func codeOf(err error) int {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

func explain(code int) *explanation {
	for i := range explanations {
		if slices.Contains(explanations[i].codes, code) {
			return &explanations[i]
		}
	}
	return nil
}
