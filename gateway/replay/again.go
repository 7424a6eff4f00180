package replay

import (
	"sallyport/gateway/execution"
	"sallyport/gateway/history"
	"sallyport/gateway/toolcall"
)

// Again prepares an execution to run its program once more, after the machine that ran it was lost: from now on, the calls in its own
// journal answer the same calls. doubts names calls that may have been done and must not be repeated; with any, nothing is prepared.
func (rr *Replay) Again(run *toolcall.Execution) (doubts string, err error) {
	contents, err := run.Journal.Contents()
	if err != nil {
		return "", err
	}
	end := history.End{Record: history.Record{Status: execution.Interrupted}}
	answers, _ := newReplayer(contents, end, true, nil)
	var unknown []*entry
	for _, list := range answers.known {
		for _, p := range list {
			p.place, p.recorded = p.Number, p.Asked
			if p.Asked && p.action == actionConfirm && p.task() == "" && !rr.safeToRepeat(p.Call) {
				unknown = append(unknown, p)
			}
		}
	}
	if len(unknown) > 0 {
		return namesInOrder(unknown), nil
	}
	answers.replay, run.Replay = rr, answers
	return "", nil
}
