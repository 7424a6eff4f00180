package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"sallyport/bench/cluster/plan"
	"sallyport/bench/doc"
	"sallyport/bench/table"
)

// planSection is the section of capacity.md with the plan.
const planSection = "plan"

// makePlan prints the capacity plan, or writes it into the documents.
func (o *options) makePlan() error {
	_, rows, err := readResults(o.out + ".jsonl")
	if err != nil {
		return err
	}
	text, err := o.planText(rows)
	if err != nil {
		return err
	}
	if o.docs == "" || o.figures != "" {
		fmt.Print(text)
		return nil
	}
	return doc.Replace(capacityPath(o.docs), planSection, text)
}

func capacityPath(folder string) string { return filepath.Join(folder, "capacity.md") }

// planText returns the plan of measured costs, and of the figures in a file, if there is one.
func (o *options) planText(rows []table.Row) (string, error) {
	costs, err := costsOf(rows)
	if err != nil {
		return "", err
	}
	f := plan.Default(costs)
	if o.figures == "-" {
		data, err := json.MarshalIndent(f, "", "  ")
		return string(data) + "\n", err
	}
	if o.figures != "" {
		if f, err = f.Read(o.figures); err != nil {
			return "", err
		}
	}
	text, err := f.Tables()
	return doc.Texts{Tables: text}.Wrapped().Tables + "\n", err
}

// costsOf returns the costs that the rows have.
func costsOf(rows []table.Row) (c plan.Costs, err error) {
	p50 := func(name string) float64 {
		for _, r := range rows {
			if r.Case == name {
				return r.P50
			}
		}
		err = errors.Join(err, fmt.Errorf("the results have no row %q: measure again", name))
		return 0
	}
	parts := func(name string) plan.Cost {
		return plan.Cost{Gateway: p50(name + partGateway), Servers: p50(name + partServers), Worker: p50(name + partWorker)}
	}
	c = plan.Costs{Program: parts(costOwn), Call: parts(costCall), Recorded: parts(costRecorded), Acknowledge: p50(recordRow)}
	return c, err
}
