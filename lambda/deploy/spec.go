package deploy

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Architectures that a function can have.
var Architectures = []string{"x86_64", "arm64"}

// Spec is what is wanted. Zero values mean the defaults.
type Spec struct {
	// Function is its name. Default: dorylus-lambda.
	Function string
	// Worker is the path of the program, one static file.
	Worker string
	// Arch is the processor that it is built for: "x86_64" (default), "arm64".
	Arch string
	// MemoryMB is 128 to 10,240. Default: 1,769, which is one processor.
	MemoryMB int
	// Timeout is the longest invocation, 1 s to 900 s. Default: 900 s.
	Timeout time.Duration
	// Env are variables of the worker.
	Env map[string]string
	// Region is AWS's.
	Region string
	// Role is the ARN of a role that is there already; default: one is made, named
	// after the function, with the rights of a worker.
	Role string
	// Subnets attach the function to a VPC, so that it reaches graph servers that have no
	// public address; they have to be there. Default: no VPC.
	Subnets []string
	// SecurityGroups are those of the workers, which have to be there and are not changed.
	// Default: one is made that lets workers reach GraphGroup at Port, and nothing else.
	SecurityGroups []string
	// GraphGroup is the graph servers' security group, which is not changed, and Port is
	// where they listen for workers.
	GraphGroup string
	Port       int
	// Reserved is the function's own share of the account's concurrency, and its limit;
	// 0 leaves it as it is.
	Reserved int
}

func (s Spec) withDefaults() Spec {
	if s.Function == "" {
		s.Function = "dorylus-lambda"
	}
	if s.Arch == "" {
		s.Arch = Architectures[0]
	}
	if s.MemoryMB == 0 {
		s.MemoryMB = 1769
	}
	if s.Timeout == 0 {
		s.Timeout = 900 * time.Second
	}
	return s
}

var (
	functionName = regexp.MustCompile(`^[A-Za-z0-9-_]{1,49}$`) // the role's name is 15 longer, and 64 at most
	roleARN      = regexp.MustCompile(`^arn:aws[a-z-]*:iam::\d{12}:role/.+$`)
	subnetID     = regexp.MustCompile(`^subnet-[0-9a-f]+$`)
	groupID      = regexp.MustCompile(`^sg-[0-9a-f]+$`)
	variableName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]+$`)
)

// Validate reports all that is wrong.
func (s Spec) Validate() error {
	s = s.withDefaults()
	var errs []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf("deploy the worker: "+format, args...))
		}
	}
	bad(!functionName.MatchString(s.Function), "function %q: a name has up to 49 letters, digits, - and _", s.Function)
	bad(s.Worker == "", "the worker's program is not named")
	bad(!slices.Contains(Architectures, s.Arch), "architecture %q: choose one of %s", s.Arch, strings.Join(Architectures, ", "))
	bad(s.MemoryMB < 128 || s.MemoryMB > 10240, "memory of %d MB: give 128 to 10240", s.MemoryMB)
	bad(s.Timeout < time.Second || s.Timeout > 900*time.Second || s.Timeout%time.Second != 0, "timeout of %v: give whole seconds, 1s to 15m", s.Timeout)
	bad(s.Region == "", "no region is set: give one, or set AWS_REGION")
	bad(s.Role != "" && !roleARN.MatchString(s.Role), "role %q is no ARN of a role, such as arn:aws:iam::123456789012:role/worker", s.Role)
	for _, id := range s.Subnets {
		bad(!subnetID.MatchString(id), "subnet %q: an id looks like subnet-0abc", id)
	}
	for _, id := range s.SecurityGroups {
		bad(!groupID.MatchString(id), "security group %q: an id looks like sg-0abc", id)
	}
	bad(s.GraphGroup != "" && !groupID.MatchString(s.GraphGroup), "security group %q of the graph servers: an id looks like sg-0abc", s.GraphGroup)
	bad(s.makesGroup() && (s.GraphGroup == "" || s.Port == 0), "subnets without a security group: name one for the workers; or name the graph servers' group and their port, and one is made")
	bad(len(s.Subnets) == 0 && (len(s.SecurityGroups) > 0 || s.GraphGroup != ""), "a security group without subnets: name the subnets in which workers are attached")
	bad(s.Port < 0 || s.Port > 65535, "port %d: give 1 to 65535", s.Port)
	bad(s.Reserved < 0, "reserved concurrency of %d: give 1 or more, or 0 to leave it as it is", s.Reserved)
	for name := range s.Env {
		bad(!variableName.MatchString(name) || strings.HasPrefix(name, "AWS_LAMBDA_"), "variable %q: a name has letters, digits and _, two or more, and does not begin with AWS_LAMBDA_", name)
	}
	return errors.Join(errs...)
}

// vpc says that the function is attached to one.
func (s *Spec) vpc() bool { return len(s.Subnets) > 0 }

// makesGroup says that the workers' security group is made.
func (s *Spec) makesGroup() bool { return s.vpc() && len(s.SecurityGroups) == 0 }

func (s *Spec) roleName() string { return s.Function + "-worker-role" }
