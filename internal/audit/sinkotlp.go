package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"sallyport/internal/config"
	"sallyport/internal/sanitize"
)

// otlp sends records as logs of OpenTelemetry: OTLP over HTTP, in the JSON encoding of its protobuf.
type otlp struct {
	set     config.OTLP
	url     string
	version string
	host    string
	client  httpClient
}

func newOTLP(set config.OTLP, version string) *otlp {
	url := strings.TrimSuffix(set.URL, "/")
	if !strings.HasSuffix(url, "/v1/logs") {
		url += "/v1/logs"
	}
	return &otlp{set: set, url: url, version: version, host: hostName(), client: newHTTPClient(config.AuditSinks{OTLP: &set}.SecretValues())}
}

// The messages of opentelemetry.proto.collector.logs.v1 that are needed. 64-bit numbers are strings in JSON.
type (
	otlpRequest struct {
		ResourceLogs []otlpResourceLogs `json:"resourceLogs"`
	}
	otlpResourceLogs struct {
		Resource  otlpResource    `json:"resource"`
		ScopeLogs []otlpScopeLogs `json:"scopeLogs"`
	}
	otlpResource struct {
		Attributes []otlpAttribute `json:"attributes"`
	}
	otlpScopeLogs struct {
		Scope      otlpScope    `json:"scope"`
		LogRecords []otlpRecord `json:"logRecords"`
	}
	otlpScope struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	otlpRecord struct {
		Time       string          `json:"timeUnixNano"`
		Observed   string          `json:"observedTimeUnixNano"`
		Severity   int             `json:"severityNumber"`
		Text       string          `json:"severityText"`
		Body       otlpValue       `json:"body"`
		Attributes []otlpAttribute `json:"attributes"`
		Event      string          `json:"eventName"`
	}
	otlpAttribute struct {
		Key   string    `json:"key"`
		Value otlpValue `json:"value"`
	}
	otlpValue struct {
		String *string `json:"stringValue,omitempty"`
		Int    *string `json:"intValue,omitempty"`
	}
)

func textValue(s string) otlpValue { return otlpValue{String: &s} }

func intValue(n int64) otlpValue { s := strconv.FormatInt(n, 10); return otlpValue{Int: &s} }

// attributes returns the nonzero members of a record, with their JSON names.
func attributes(r Record) (all []otlpAttribute) {
	v := reflect.ValueOf(r.Event)
	for i, field := range reflect.VisibleFields(v.Type()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch value := v.Field(i); {
		case name == "time" || value.IsZero():
		case value.CanInt():
			all = append(all, otlpAttribute{"sallyport." + name, intValue(value.Int())})
		case value.CanUint():
			all = append(all, otlpAttribute{"sallyport." + name, intValue(int64(value.Uint()))})
		case value.Kind() == reflect.String:
			all = append(all, otlpAttribute{"sallyport." + name, textValue(value.String())})
		}
	}
	return append(all, otlpAttribute{"sallyport.prev", textValue(r.Prev)}, otlpAttribute{"sallyport.hash", textValue(r.Hash)})
}

func (o *otlp) request(records []Record) otlpRequest {
	logs := make([]otlpRecord, len(records))
	for i, r := range records {
		nanos := strconv.FormatInt(r.Time.UnixNano(), 10)
		severity := map[string]int{"info": 9, "warn": 13, "error": 17}[r.Severity()]
		logs[i] = otlpRecord{nanos, nanos, severity, strings.ToUpper(r.Severity()), textValue(r.Summary()), attributes(r), "sallyport." + string(r.Kind)}
	}
	resource := otlpResource{[]otlpAttribute{{"service.name", textValue("sallyport")}, {"service.version", textValue(o.version)}, {"host.name", textValue(o.host)}}}
	return otlpRequest{[]otlpResourceLogs{{resource, []otlpScopeLogs{{otlpScope{"sallyport/audit", o.version}, logs}}}}}
}

// Send implements [Sink].
func (o *otlp) Send(ctx context.Context, records []Record) error {
	body, err := json.Marshal(o.request(records))
	if err != nil {
		return fmt.Errorf("encode records: %w", err)
	}
	r, err := post(ctx, o.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, value := range o.set.Headers {
		r.Header.Set(name, value)
	}
	answer, err := o.client.do(r)
	if err != nil {
		return err
	}
	var got struct {
		PartialSuccess struct {
			Rejected json.RawMessage `json:"rejectedLogRecords"`
			Message  string          `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	_ = json.Unmarshal(answer, &got) // without a body all records were accepted
	if n := strings.Trim(string(got.PartialSuccess.Rejected), `"`); n != "" && n != "0" {
		return fmt.Errorf("%w: %s of %d: %s", ErrRefused, sanitize.Line(n, 20), len(records), sanitize.Line(got.PartialSuccess.Message, 200))
	}
	return nil
}
