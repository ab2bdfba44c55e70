package local

import (
	"context"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
)

func benchService(b *testing.B, o Options) *lambda.Client {
	s, err := Start(context.Background(), o)
	if err != nil {
		b.Fatal(err)
	}
	transport := &http.Transport{}
	b.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := s.Close(context.Background()); err != nil {
			b.Error(err)
		}
	})
	return newClient(s.Endpoint(), transport)
}

// BenchmarkInvoke is a small call through the SDK to a warm worker: what the
// service adds to the work, freezing included.
func BenchmarkInvoke(b *testing.B) {
	for _, f := range []struct {
		name     string
		noFreeze bool
	}{{"freeze", false}, {"nofreeze", true}} {
		b.Run(f.name, func(b *testing.B) {
			c := benchService(b, Options{Functions: map[string]Function{"f": testFunction(b)}, NoFreeze: f.noFreeze})
			for b.Loop() {
				if out, err := c.Invoke(b.Context(), &lambda.InvokeInput{FunctionName: aws.String("f")}); err != nil || out.FunctionError != nil {
					b.Fatal(err, out)
				}
			}
		})
	}
}

// BenchmarkColdStart is a call that finds no environment, its end included.
func BenchmarkColdStart(b *testing.B) {
	c := benchService(b, Options{Functions: map[string]Function{"f": testFunction(b)}})
	for b.Loop() {
		out, err := c.Invoke(b.Context(), &lambda.InvokeInput{FunctionName: aws.String("f"), Payload: []byte(`{"do":"exit"}`)})
		if err != nil || out.FunctionError == nil {
			b.Fatal(err, out)
		}
	}
}
