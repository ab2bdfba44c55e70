package cuda

import (
	"errors"
	"fmt"
	"os"
)

// NotBuilt is why a program without GPU support cannot use a GPU.
const NotBuilt = "built without GPU support: tag cuda"

// DriverEnv is the environment variable that names a driver's library to open instead
// of the one of this machine.
const DriverEnv = "DORYLUS_CUDA_DRIVER"

// The least that is needed of a device and, as CUDA versions, of drivers.
const (
	leastMajor  = 7
	driverSM70  = 9000  // for PTX 6.0
	driverSM80  = 11000 // for PTX 7.0
	leastSM80   = 8
	visibleName = "CUDA_VISIBLE_DEVICES"
)

// Report is what there is to compute with on GPUs, and what is in the way.
type Report struct {
	Built    bool   `json:"built"`             // this program has GPU support
	Library  string `json:"library,omitempty"` // the driver's
	Driver   string `json:"driver,omitempty"`  // its CUDA version: "12.8"
	Emulated bool   `json:"emulated"`          // it is no driver but the emulated device of the tests
	// Visible is CUDA_VISIBLE_DEVICES, if it is set: the driver shows no other GPUs.
	Visible *string `json:"cuda_visible_devices,omitempty"`
	// Optional says of each library that is not required whether it is there.
	Optional map[string]bool `json:"optional,omitempty"`
	CUBLAS   *Library        `json:"cublas,omitempty"` // nil: there are no devices for it
	Devices  []GPU           `json:"devices"`
	Problem  *Problem        `json:"problem,omitempty"` // why there are no devices
}

// Library is an optional library, or why it cannot be used.
type Library struct {
	File    string `json:"file,omitempty"`    // as the system knows it
	Version string `json:"version,omitempty"` // "12.8.4"
	Problem string `json:"problem,omitempty"`
	Named   bool   `json:"named,omitempty"` // its file was, rather than found
}

// GPU is what the driver shows of one.
type GPU struct {
	Name       string   `json:"name"`       // "cuda:0"
	Model      string   `json:"model"`      // "NVIDIA H200"
	Capability string   `json:"capability"` // "9.0"
	Bytes      int64    `json:"memory_bytes"`
	Free       int64    `json:"free_bytes"` // 0 if it is not usable
	PTX        string   `json:"ptx,omitempty"`
	Cubin      string   `json:"cubin,omitempty"`      // the exact image that is used instead
	CubinNote  string   `json:"cubin_note,omitempty"` // why one that is there is not used
	Usable     bool     `json:"usable"`
	Problem    *Problem `json:"problem,omitempty"`
}

// Problem is why something cannot be used.
type Problem struct {
	Code   int    `json:"code,omitempty"` // the driver's
	Reason string `json:"reason"`
	Next   string `json:"next"` // what to do
}

func (p *Problem) String() string { return p.Reason + "; " + p.Next }

// problemOf puts an error into a report.
func problemOf(err error) *Problem {
	var e *Error
	if errors.As(err, &e) {
		return &Problem{Code: e.Code, Reason: e.Reason(), Next: e.Next()}
	}
	return &Problem{Reason: err.Error(), Next: "build with ./build.sh build, on Linux on amd64 or arm64, with gcc"}
}

// Usable are the devices of a report that can be computed on.
func (r *Report) Usable() []GPU {
	var usable []GPU
	for _, d := range r.Devices {
		if d.Usable {
			usable = append(usable, d)
		}
	}
	return usable
}

// Refusal is why no GPU can be used, nil if one can.
func (r *Report) Refusal() error {
	switch {
	case r.Problem != nil:
		return errors.New(r.Problem.String())
	case len(r.Usable()) > 0:
		return nil
	case len(r.Devices) == 0:
		return &Error{Op: "count the devices", Code: codeNoDevice}
	}
	var errs []error
	for _, d := range r.Devices {
		errs = append(errs, fmt.Errorf("%s (%s) cannot be used: %w", d.Name, d.Model, errors.New(d.Problem.String())))
	}
	return errors.Join(errs...)
}

// Probe reports what the driver, cuBLAS and the folder of images that o names have to
// offer. It may take for ever, or end the process, where the driver does: see Ask.
func Probe(o Options) Report {
	d, err := openDriver(o.Driver)
	return probe(d, err, o)
}

func probe(d driver, err error, o Options) Report {
	r := Report{Built: Built, Devices: []GPU{}}
	if v, ok := os.LookupEnv(visibleName); ok {
		r.Visible = &v
	}
	if err != nil {
		r.Problem = problemOf(err)
		return r
	}
	info := d.Info()
	r.Library, r.Driver, r.Emulated = info.Library, versionText(info.Version), info.Emulated
	n, err := d.Devices()
	if err == nil && n == 0 {
		err = &Error{Op: "count the devices", Code: codeNoDevice}
	}
	if err != nil {
		r.Problem = problemOf(err)
		return r
	}
	for i := range n {
		r.Devices = append(r.Devices, probeDevice(d, i, info.Version, o.Cubins))
	}
	r.CUBLAS = &Library{Named: o.CUBLAS != ""}
	l, err := openCUBLAS(d, o.CUBLAS)
	if err == nil {
		r.CUBLAS.File, r.CUBLAS.Version = l.File(), l.Version()
	} else {
		r.CUBLAS.Problem = err.Error()
	}
	r.Optional = map[string]bool{"cublas": err == nil}
	for name, libraries := range optional {
		for _, l := range libraries {
			r.Optional[name] = r.Optional[name] || d.Loads(l)
		}
	}
	return r
}

// optional are the other libraries that are used where they are there, newest first.
var optional = map[string][]string{
	"cusparse": {"libcusparse.so.12", "libcusparse.so.11"},
	"nccl":     {"libnccl.so.2"},
}

func probeDevice(d driver, i, version int, cubins string) GPU {
	dev := GPU{Name: fmt.Sprintf("cuda:%d", i)}
	info, err := d.Device(i)
	if err != nil {
		dev.Problem = problemOf(err)
		return dev
	}
	dev.Model, dev.Capability, dev.Bytes = info.Name, fmt.Sprintf("%d.%d", info.Major, info.Minor), info.Bytes
	if dev.PTX, dev.Problem = target(info.Major, info.Minor, version); dev.Problem != nil {
		return dev
	}
	var image *cubin
	if image, dev.CubinNote = findCubin(cubins, kernelHash(), info.Major, info.Minor); image != nil {
		dev.Cubin = image.file
	}
	w, err := newWorker(d, i)
	if err == nil {
		err = w.do(func(c context) (err error) {
			dev.Free, _, err = c.Memory()
			return err
		})
		err = errors.Join(err, w.close())
	}
	if err != nil {
		dev.Free, dev.Problem = 0, problemOf(err)
		return dev
	}
	dev.Usable = true
	return dev
}

// target is the form of the kernels that a device and a driver take.
func target(major, minor, version int) (string, *Problem) {
	switch {
	case major < leastMajor:
		return "", &Problem{Code: 209, Reason: fmt.Sprintf("compute capability %d.%d, 7.0 needed", major, minor), Next: "use a newer GPU"}
	case major >= leastSM80 && version >= driverSM80:
		return "sm_80", nil
	case version >= driverSM70:
		return "sm_70", nil
	}
	return "", &Problem{Code: 222, Reason: fmt.Sprintf("the driver is of CUDA %s, %s needed", versionText(version), versionText(driverSM70)), Next: updateDriver}
}

// versionText is "12.8" for 12080.
func versionText(v int) string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }
