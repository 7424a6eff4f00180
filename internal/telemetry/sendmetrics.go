package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
)

// metricsSender sends metrics as sums since the start. It implements sdkmetric.Exporter, for the kinds of [instruments].
type metricsSender struct{ *upload }

// Temporality implements sdkmetric.Exporter.
func (metricsSender) Temporality(sdkmetric.InstrumentKind) metricdata.Temporality {
	return metricdata.CumulativeTemporality
}

// Aggregation implements sdkmetric.Exporter.
func (metricsSender) Aggregation(kind sdkmetric.InstrumentKind) sdkmetric.Aggregation {
	return sdkmetric.DefaultAggregationSelector(kind)
}

// ForceFlush implements sdkmetric.Exporter: nothing is kept.
func (metricsSender) ForceFlush(context.Context) error { return nil }

// Shutdown implements sdkmetric.Exporter.
func (s metricsSender) Shutdown(context.Context) error { s.client.CloseIdleConnections(); return nil }

// Export implements sdkmetric.Exporter.
func (s metricsSender) Export(ctx context.Context, all *metricdata.ResourceMetrics) error {
	of := &metricspb.ResourceMetrics{SchemaUrl: all.Resource.SchemaURL(), Resource: &resourcepb.Resource{Attributes: attributes(all.Resource.Iter())}}
	for _, scope := range all.ScopeMetrics {
		to := &metricspb.ScopeMetrics{Scope: &commonpb.InstrumentationScope{Name: scope.Scope.Name, Version: scope.Scope.Version}}
		for _, m := range scope.Metrics {
			to.Metrics = append(to.Metrics, written(m))
		}
		of.ScopeMetrics = append(of.ScopeMetrics, to)
	}
	s.send(ctx, &metricspb.MetricsData{ResourceMetrics: []*metricspb.ResourceMetrics{of}})
	return nil
}

// written is a metric as it goes out.
func written(m metricdata.Metrics) *metricspb.Metric {
	to := &metricspb.Metric{Name: m.Name, Description: m.Description, Unit: m.Unit}
	const since = metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		to.Data = &metricspb.Metric_Sum{Sum: &metricspb.Sum{DataPoints: points(data.DataPoints), AggregationTemporality: since, IsMonotonic: data.IsMonotonic}}
	case metricdata.Gauge[int64]:
		to.Data = &metricspb.Metric_Gauge{Gauge: &metricspb.Gauge{DataPoints: points(data.DataPoints)}}
	case metricdata.Histogram[float64]:
		to.Data = &metricspb.Metric_Histogram{Histogram: &metricspb.Histogram{DataPoints: histograms(data.DataPoints), AggregationTemporality: since}}
	}
	return to
}

func points(all []metricdata.DataPoint[int64]) (to []*metricspb.NumberDataPoint) {
	for _, p := range all {
		to = append(to, &metricspb.NumberDataPoint{
			Attributes: attributes(p.Attributes.Iter()), StartTimeUnixNano: nanos(p.StartTime), TimeUnixNano: nanos(p.Time),
			Value: &metricspb.NumberDataPoint_AsInt{AsInt: p.Value}, Exemplars: exemplars(p.Exemplars),
		})
	}
	return to
}

func histograms(all []metricdata.HistogramDataPoint[float64]) (to []*metricspb.HistogramDataPoint) {
	for _, p := range all {
		h := &metricspb.HistogramDataPoint{
			Attributes: attributes(p.Attributes.Iter()), StartTimeUnixNano: nanos(p.StartTime), TimeUnixNano: nanos(p.Time),
			Count: p.Count, Sum: &p.Sum, BucketCounts: p.BucketCounts, ExplicitBounds: p.Bounds, Exemplars: exemplars(p.Exemplars),
		}
		if least, ok := p.Min.Value(); ok {
			h.Min = &least
		}
		if most, ok := p.Max.Value(); ok {
			h.Max = &most
		}
		to = append(to, h)
	}
	return to
}

// exemplars are single measurements with the traces that they were made in.
func exemplars[N int64 | float64](all []metricdata.Exemplar[N]) (to []*metricspb.Exemplar) {
	for _, e := range all {
		one := &metricspb.Exemplar{TimeUnixNano: nanos(e.Time), SpanId: e.SpanID, TraceId: e.TraceID}
		switch value := any(e.Value).(type) {
		case int64:
			one.Value = &metricspb.Exemplar_AsInt{AsInt: value}
		case float64:
			one.Value = &metricspb.Exemplar_AsDouble{AsDouble: value}
		}
		to = append(to, one)
	}
	return to
}

// attributes are texts, numbers and truth values here.
func attributes(all attribute.Iterator) (to []*commonpb.KeyValue) {
	for all.Next() {
		a := all.Attribute()
		value := &commonpb.AnyValue{}
		switch a.Value.Type() {
		case attribute.BOOL:
			value.Value = &commonpb.AnyValue_BoolValue{BoolValue: a.Value.AsBool()}
		case attribute.INT64:
			value.Value = &commonpb.AnyValue_IntValue{IntValue: a.Value.AsInt64()}
		default:
			value.Value = &commonpb.AnyValue_StringValue{StringValue: a.Value.String()}
		}
		to = append(to, &commonpb.KeyValue{Key: string(a.Key), Value: value})
	}
	return to
}

func nanos(t time.Time) uint64 {
	if t.IsZero() {
		return 0
	}
	return uint64(t.UnixNano())
}
