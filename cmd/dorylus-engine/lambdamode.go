package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"dorylus/engine"
	"dorylus/kernels"
	"dorylus/lambda/fleet"
	"dorylus/lambda/invoke"
	"dorylus/lambda/local"
	"dorylus/lambda/rpc"
	"dorylus/lambda/wire"
)

// lambdaMode is all that --mode=lambda has running besides the engine.
type lambdaMode struct {
	fleet   *fleet.Fleet
	server  *rpc.Server
	service *local.Service // nil: another service is asked for workers

	mu   sync.Mutex
	used []engine.LambdaUsed
}

// certificateLife is how long a run's certificate is good for: longer than any run.
const certificateLife = 30 * 24 * time.Hour

// openLambda starts what workers come to, and the local service if that is to bring
// them. It calls no worker yet.
func openLambda(ctx context.Context, c *engine.Config, dev kernels.Device) (_ *lambdaMode, err error) {
	m := &lambdaMode{}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.close(nil))
		}
	}()
	bind, hosts := "127.0.0.1:0", []string{"127.0.0.1"}
	if c.LambdaAddress != "" {
		host, port, err := net.SplitHostPort(c.LambdaAddress)
		if err != nil {
			return nil, err
		}
		bind, hosts = net.JoinHostPort("", port), []string{host}
	}
	listener, err := net.Listen("tcp", bind)
	if err != nil {
		return nil, fmt.Errorf("listen for workers: %w", err)
	}
	address := c.LambdaAddress
	if address == "" {
		address = listener.Addr().String()
	}
	cert, text, err := rpc.Certificate(hosts, certificateLife)
	if err != nil {
		listener.Close()
		return nil, err
	}
	var latency time.Duration
	launch := invoke.Options{
		Function: c.LambdaFunction, Addresses: []string{address}, Certificate: text, Used: m.note,
	}
	switch c.LambdaEndpoint {
	case "aws":
	case "local":
		chaos, err := local.ParseChaos(c.Chaos)
		if err != nil {
			listener.Close()
			return nil, usage(fmt.Errorf("--%w", err))
		}
		latency = chaos.Latency
		if m.service, err = startLocal(c, chaos); err != nil {
			listener.Close()
			return nil, err
		}
		launch.Endpoint, launch.Modelled = m.service.Endpoint(), true
	default:
		launch.Endpoint, launch.Modelled = c.LambdaEndpoint, true
	}
	launcher, err := invoke.New(ctx, launch)
	if err == nil {
		m.fleet, err = fleet.New(fleet.Options{Workers: workers(c), Launcher: launcher, Device: dev, Precision: c.WirePrecision})
	}
	if err != nil {
		listener.Close()
		return nil, err
	}
	m.server = rpc.Listen(listener, cert, func(conn wire.Conn, stop func()) error {
		return m.fleet.Serve(wire.Late(conn, latency), stop)
	})
	return m, nil
}

// startLocal starts the embedded service with the worker that lies beside this program.
func startLocal(c *engine.Config, chaos local.Chaos) (*local.Service, error) {
	command, err := workerCommand("")
	if err != nil {
		return nil, err
	}
	return local.Start(context.Background(), local.Options{
		Functions: map[string]local.Function{c.LambdaFunction: {Command: command, MemoryMB: c.LambdaMemory}},
		Chaos:     chaos,
	})
}

// workers is how many are wanted: on this machine no more than it has processors, for
// at least two.
func workers(c *engine.Config) int {
	if n, err := strconv.Atoi(c.Lambdas); err == nil {
		return n
	}
	most := 100
	if c.LambdaEndpoint == "local" {
		most = max(runtime.NumCPU(), 2)
	}
	if c.Intervals > 0 {
		most = min(most, c.Intervals)
	}
	return most
}

// note keeps what an invocation was billed.
func (m *lambdaMode) note(u engine.LambdaUsed) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used = append(m.used, u)
}

// close ends the workers and then what they came to, and tells l what they were billed.
func (m *lambdaMode) close(l engine.Listener) error {
	var errs []error
	if m.fleet != nil {
		errs = append(errs, m.fleet.Close())
	}
	if m.server != nil {
		errs = append(errs, m.server.Close())
	}
	if m.service != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		errs = append(errs, m.service.Close(ctx))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if l != nil {
		for _, u := range slices.Clone(m.used) {
			l.Event(u)
		}
	}
	return errors.Join(errs...)
}
