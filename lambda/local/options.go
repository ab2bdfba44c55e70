package local

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

// Lambda's limits, in bytes. ECOSYSTEM calls the exact numbers of the replies
// reported, not documented.
const (
	// MaxPayload is the largest body of a synchronous call.
	MaxPayload = 6 << 20
	// MaxReply is the largest reply of a call that is not streamed.
	MaxReply = 6<<20 + 100
	// MaxAsyncPayload is the largest body of an asynchronous call.
	MaxAsyncPayload = 1 << 20
	// MaxStreamedReply is the largest streamed reply; what follows its first 6 MiB
	// passes at 2 MiB a second.
	MaxStreamedReply = 200 << 20

	streamFree   = 6 << 20
	streamRate   = 2 << 20 // bytes per second
	maxContext   = 3583    // bytes of base64
	initTimeout  = 10 * time.Second
	scaleWindow  = 10 * time.Second
	asyncQueue   = 10_000
	asyncRetries = 2
	asyncMaxAge  = 6 * time.Hour
	logTail      = 4 << 10
)

// Function is what is deployed under a name.
type Function struct {
	// Command is the worker's program and arguments. Lambda passes none, so a real
	// worker needs the program alone.
	Command []string
	// Env holds variables besides those that Lambda sets. The worker sees no others.
	Env map[string]string
	// MemoryMB is the memory, 128 to 10,240 MB; 0: 1,769, one processor's worth.
	MemoryMB int
	// Timeout ends a call, 1 s to 900 s; 0: 900 s.
	Timeout time.Duration
	// Reserved limits the function's concurrent calls; 0: the service's limit only.
	Reserved int
}

// Options configure a service. Zero values mean the default.
type Options struct {
	// Functions by name: letters, digits, - and _, 64 at most.
	Functions map[string]Function
	// Listen is the address of the Invoke API; default "127.0.0.1:0", any free port.
	// Only loopback addresses are accepted: calls are not authenticated.
	Listen string
	// Region names the region in ARNs and to workers; default us-east-1.
	Region string
	// Concurrency limits all running calls; default 1,000. The rate of requests is
	// limited to ten times as many a second.
	Concurrency int
	// ScaleUp is how many environments a function may add in 10 s; default 1,000.
	// What is left unused is not saved up beyond that number.
	ScaleUp int
	// IdleReap ends an environment that had no call for so long; default 5 min.
	IdleReap time.Duration
	// ColdStartDelay is spent before a new environment's process starts, as
	// Lambda spends time on fetching the code; not billed. Default 0.
	ColdStartDelay time.Duration
	// BandwidthBytesPerSec caps payloads and replies of each environment, each way;
	// 0: no cap. Connections that a worker opens itself are not slowed.
	BandwidthBytesPerSec int64
	// NoFreeze leaves environments running between calls. Without it they are
	// stopped (on Linux; elsewhere they always run on).
	NoFreeze bool
	// Cgroup is a cgroup v2 folder that this process may create children in;
	// "": look for one, "none": use none.
	Cgroup string
	// Chaos injects faults; the zero value none.
	Chaos Chaos
	// Clock is the time; default the real one.
	Clock Clock
	// Log receives what workers print and the START, END and REPORT lines; nil: nowhere.
	Log io.Writer
	// OnEvent is called with everything that happens, one event at a time. It must
	// return soon and must not call the service.
	OnEvent func(Event)
}

var functionName = regexp.MustCompile(`^[a-zA-Z0-9-_]{1,64}$`)

func (o Options) withDefaults() Options {
	def := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	def(&o.Concurrency, 1000)
	def(&o.ScaleUp, 1000)
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	if o.Region == "" {
		o.Region = "us-east-1"
	}
	if o.IdleReap == 0 {
		o.IdleReap = 5 * time.Minute
	}
	if o.Clock == nil {
		o.Clock = realClock{}
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	if o.OnEvent == nil {
		o.OnEvent = func(Event) {}
	}
	o.Chaos = o.Chaos.withDefaults()
	o.Functions = maps.Clone(o.Functions)
	for name, f := range o.Functions {
		def(&f.MemoryMB, MBPerCPU)
		if f.Timeout == 0 {
			f.Timeout = 900 * time.Second
		}
		o.Functions[name] = f
	}
	return o
}

// Validate returns every problem of the options at once.
func (o Options) Validate() error {
	o = o.withDefaults()
	var all []error
	bad := func(format string, args ...any) { all = append(all, fmt.Errorf(format, args...)) }
	if len(o.Functions) == 0 {
		bad("no functions: name at least one, with its program")
	}
	for _, name := range slices.Sorted(maps.Keys(o.Functions)) {
		f := o.Functions[name]
		if !functionName.MatchString(name) {
			bad("function name %q: use 1 to 64 letters, digits, - and _", name)
		}
		if err := f.validate(); err != nil {
			bad("function %s: %w", name, err)
		}
	}
	for _, n := range []struct {
		name  string
		value int64
		min   int64
	}{
		{"concurrency", int64(o.Concurrency), 1}, {"scale-up", int64(o.ScaleUp), 1}, {"idle time", int64(o.IdleReap), 1},
		{"cold start delay", int64(o.ColdStartDelay), 0}, {"bandwidth", o.BandwidthBytesPerSec, 0},
	} {
		if n.value < n.min {
			bad("%s is %d, must be %d or more", n.name, n.value, n.min)
		}
	}
	if err := loopback(o.Listen); err != nil {
		all = append(all, err)
	}
	return errors.Join(append(all, o.Chaos.Validate())...)
}

func (f Function) validate() error {
	var all []error
	if len(f.Command) == 0 {
		all = append(all, errors.New("no program to run"))
	} else if st, err := os.Stat(f.Command[0]); err != nil {
		all = append(all, fmt.Errorf("program: %w", err))
	} else if st.IsDir() || !filepath.IsAbs(f.Command[0]) {
		all = append(all, fmt.Errorf("program %q: give the absolute path of a file", f.Command[0]))
	}
	if f.MemoryMB < 128 || f.MemoryMB > 10_240 {
		all = append(all, fmt.Errorf("memory of %d MB: Lambda has 128 to 10240", f.MemoryMB))
	}
	if f.Timeout < time.Second || f.Timeout > 900*time.Second {
		all = append(all, fmt.Errorf("timeout of %v: Lambda has 1s to 15m", f.Timeout))
	}
	if f.Reserved < 0 {
		all = append(all, fmt.Errorf("reserved concurrency of %d is below 0", f.Reserved))
	}
	return errors.Join(all...)
}
