package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// twin measures what a program of calls.go does, as the SDK's client does it without us: figures in the same unit.
type twin func(ctx context.Context, session *mcp.ClientSession) ([]float64, error)

// direct is one call of a tool by the SDK's client.
func direct(ctx context.Context, session *mcp.ClientSession, name string, args map[string]any) error {
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		return err
	}
	if result.IsError || result.StructuredContent == nil {
		return fmt.Errorf("%s answered %.300q", name, textOf(result))
	}
	return nil
}

func echo(ctx context.Context, session *mcp.ClientSession) error {
	return direct(ctx, session, "echo", map[string]any{"text": "x"})
}

// directOneByOne is oneByOne.
func directOneByOne(ctx context.Context, session *mcp.ClientSession) (took []float64, err error) {
	for i := range 450 {
		one, err := since(func() error { return echo(ctx, session) })
		if err != nil {
			return nil, err
		}
		if i >= 50 {
			took = append(took, one*1000)
		}
	}
	return took, nil
}

// directAtOnce is atOnce, with as many calls at a time as an upstream may have by default.
func directAtOnce(ctx context.Context, session *mcp.ClientSession) (rates []float64, err error) {
	for range 6 {
		var calls sync.WaitGroup
		errs := make([]error, concurrency)
		begin := time.Now()
		for i := range concurrency {
			calls.Go(func() {
				for n := i; n < 1000 && errs[i] == nil; n += concurrency {
					errs[i] = echo(ctx, session)
				}
			})
		}
		calls.Wait()
		rates = append(rates, 1000/time.Since(begin).Seconds())
		for _, err := range errs {
			if err != nil {
				return nil, err
			}
		}
	}
	return rates, nil
}

// directMegabytes is tenMegabytes.
func directMegabytes(kind string) twin {
	return func(ctx context.Context, session *mcp.ClientSession) (rates []float64, err error) {
		for range 6 {
			took, err := since(func() error { return direct(ctx, session, "large", map[string]any{"kind": kind}) })
			if err != nil {
				return nil, err
			}
			rates = append(rates, 10*1000/took)
		}
		return rates, nil
	}
}
