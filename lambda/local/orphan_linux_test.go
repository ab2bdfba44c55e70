package local

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
)

// host is a program with a service in it: it calls a worker, prints the worker's
// process number, and goes on until it is killed.
func host() {
	err := func() error {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		f := Function{Command: []string{self}, Env: map[string]string{workerVariable: "1"}}
		s, err := Start(context.Background(), Options{Functions: map[string]Function{"f": f}, Cgroup: "none"})
		if err != nil {
			return err
		}
		out, err := newClient(s.Endpoint(), &http.Transport{}).Invoke(context.Background(), &lambda.InvokeInput{FunctionName: aws.String("f")})
		if err != nil {
			return err
		}
		var a answer
		if err := json.Unmarshal(out.Payload, &a); err != nil {
			return err
		}
		fmt.Println(a.PID)
		select {}
	}()
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// TestOrphans: a program that is killed without a chance to clean up takes its
// workers with it, frozen ones too.
func TestOrphans(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(testContext(t), self)
	cmd.Env = append(os.Environ(), workerVariable+"=host", "TMPDIR="+t.TempDir())
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	worker, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if s := processState(worker); s == "" {
		t.Fatalf("worker %d is not there", worker)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	ctx := testContext(t)
	for s := processState(worker); s != "" && s != "Z" && s != "X"; s = processState(worker) {
		if runtime.Gosched(); ctx.Err() != nil {
			t.Fatalf("worker %d outlives its host, in state %s", worker, s)
		}
	}
}
