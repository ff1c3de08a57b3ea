//! Gauges of the kinds, as of the last scrape.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use interlock_core::kinds::gauge::Gauge;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

#[derive(Clone, Debug, Default)]
pub(super) struct KindGauges(Arc<Mutex<Vec<Gauge>>>);

impl KindGauges {
    pub(super) fn set(&self, gauges: Vec<Gauge>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = gauges;
    }
}

impl Collector for KindGauges {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let number = |value: u64| ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
        for Gauge { name, help, label, values } in &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            // As the registry ends the help of other metrics.
            let help = format!("{help}.");
            let mut metric = encoder.encode_descriptor(name, &help, None, MetricType::Gauge)?;
            match (label, &values[..]) {
                (None, [(_, value), ..]) => number(*value).encode(metric)?,
                (None, []) => {}
                (Some(label), values) => {
                    for (word, value) in values {
                        number(*value).encode(metric.encode_family(&[(*label, *word)])?)?;
                    }
                }
            }
        }
        Ok(())
    }
}
