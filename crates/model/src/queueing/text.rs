//! Rates, times and distributions as people write them. Errors say what to write.

use super::spread::{LawSpread, Times};
use super::system::{PriorityClass, ServerGroup};
use fastpath_units::{Bytes, Duration, Rate};
use std::str::FromStr;

/// Most phases of an Erlang distribution.
const PHASES_MAX: u32 = 1000;
/// Largest squared coefficient of variation.
const VARIATION_MAX: f64 = 1e6;

/// How fast customers come or are served: a time each, a rate, or a rate of bits, which needs the
/// size of a packet.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Pace {
    /// This time each, in seconds.
    Each(f64),
    /// This many per second.
    PerSecond(f64),
    /// This many bits per second.
    Bits(f64),
}

impl Pace {
    /// Returns the mean time of each customer, in seconds.
    ///
    /// # Errors
    /// A rate of bits without a size of packets.
    pub fn seconds(self, size: Option<Bytes>) -> Result<f64, String> {
        match (self, size) {
            (Pace::Each(seconds), _) => Ok(seconds),
            (Pace::PerSecond(rate), _) => Ok(1.0 / rate),
            (Pace::Bits(rate), Some(size)) => Ok(size.bits() as f64 / rate),
            (Pace::Bits(_), None) => {
                Err("a rate of bits needs the size of a packet on the link: write --size, such as 1538B, or a rate such as 800kpps".to_owned())
            }
        }
    }

    /// Returns whether it is a rate of bits.
    pub fn is_bits(self) -> bool {
        matches!(self, Pace::Bits(_))
    }
}

impl FromStr for Pace {
    type Err = String;

    /// Reads `800kpps`, `1.2Mpps`, `3/s`, `2/ms`, `1us`, `10Gbit`.
    fn from_str(text: &str) -> Result<Pace, String> {
        let wrong = || {
            format!(
                "'{text}' is neither a rate nor a time: write a rate such as 800kpps, 3/s or 10Gbit, or a time each such as 1us"
            )
        };
        let trimmed = text.trim();
        let rate = |number: &str, per_second: f64| {
            let rate = number.trim().parse().ok().map(|n: f64| n * per_second);
            rate.filter(|rate| rate.is_finite() && *rate > 0.0).map(Pace::PerSecond).ok_or_else(wrong)
        };
        for (unit, per_second) in [("Gpps", 1e9), ("Mpps", 1e6), ("kpps", 1e3), ("pps", 1.0)] {
            if let Some(number) = trimmed.strip_suffix(unit) {
                return rate(number, per_second);
            }
        }
        if let Some((number, time)) = trimmed.split_once('/') {
            let unit =
                Some(time.trim()).filter(|unit| unit.starts_with(char::is_alphabetic)).ok_or_else(wrong)?;
            let unit: Duration = format!("1{unit}").parse().map_err(|_| wrong())?;
            return rate(number, 1.0 / unit.as_secs_f64());
        }
        if let Ok(bits) = trimmed.parse::<Rate>() {
            return Ok(Pace::Bits(bits.as_bps() as f64));
        }
        let each: Duration = trimmed.parse().map_err(|_| wrong())?;
        if each.as_ps() == 0 { Err(wrong()) } else { Ok(Pace::Each(each.as_secs_f64())) }
    }
}

impl FromStr for LawSpread {
    type Err = String;

    /// Reads `constant`, `exponential`, `erlang:4`, `hyper:4` and `cv2:0.5`.
    fn from_str(text: &str) -> Result<LawSpread, String> {
        let wrong = || {
            format!(
                "'{text}' is not a distribution: write constant, exponential, erlang:K (K phases), hyper:CV2 (CV2 above 1) or cv2:CV2"
            )
        };
        let (kind, number) = text.split_once(':').map_or((text, None), |(kind, number)| (kind, Some(number)));
        let variation = |least: f64| {
            let value: f64 = number.unwrap_or_default().trim().parse().map_err(|_| wrong())?;
            if value.is_finite() && value >= least && value <= VARIATION_MAX {
                Ok(value)
            } else {
                Err(wrong())
            }
        };
        match (kind, number) {
            ("constant", None) => Ok(LawSpread::Constant),
            ("exponential", None) => Ok(LawSpread::Exponential),
            ("erlang", Some(phases)) => {
                let phases = phases.trim().parse().ok().filter(|phases| (1..=PHASES_MAX).contains(phases));
                phases.map(LawSpread::Erlang).ok_or_else(wrong)
            }
            ("hyper", Some(_)) => variation(1.0).map(LawSpread::Hyper),
            ("cv2", Some(_)) => variation(0.0).map(LawSpread::Variation),
            _ => Err(wrong()),
        }
    }
}

/// A station as people write it: the service, the number of servers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct StationText {
    /// The service.
    pub service: Pace,
    /// Number of servers.
    pub servers: u32,
}

impl FromStr for StationText {
    type Err = String;

    /// Reads `4us` and `4us*2`.
    fn from_str(text: &str) -> Result<StationText, String> {
        let (service, servers) = text.split_once('*').unwrap_or((text, "1"));
        let count = servers.trim().parse().ok().filter(|servers| *servers > 0);
        let servers = count.ok_or_else(|| {
            format!("'{text}': '{servers}' is not a number of servers: write SERVICE*SERVERS, such as 4us*2")
        })?;
        Ok(StationText { service: service.parse()?, servers })
    }
}

impl StationText {
    /// Returns the station, with exponential services.
    ///
    /// # Errors
    /// As [`Pace::seconds`].
    pub fn group(self, size: Option<Bytes>) -> Result<ServerGroup, String> {
        Ok(ServerGroup { service: Times::exponential(self.service.seconds(size)?), servers: self.servers })
    }
}

/// A class as people write it: arrivals, services, their distribution.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ClassText {
    /// The arrivals.
    pub arrivals: Pace,
    /// The service.
    pub service: Pace,
    /// The distribution of the services.
    pub spread: LawSpread,
}

impl FromStr for ClassText {
    type Err = String;

    /// Reads `200kpps,1us` and `200kpps,1us,constant`.
    fn from_str(text: &str) -> Result<ClassText, String> {
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        let (arrivals, service, spread) = match parts[..] {
            [arrivals, service] => (arrivals, service, LawSpread::Exponential),
            [arrivals, service, spread] => (arrivals, service, spread.parse()?),
            _ => {
                return Err(format!(
                    "'{text}': write ARRIVALS,SERVICE or ARRIVALS,SERVICE,DISTRIBUTION, such as 200kpps,1us,constant"
                ));
            }
        };
        Ok(ClassText { arrivals: arrivals.parse()?, service: service.parse()?, spread })
    }
}

impl ClassText {
    /// Returns the class, with Poisson arrivals.
    ///
    /// # Errors
    /// As [`Pace::seconds`].
    pub fn class(self, size: Option<Bytes>) -> Result<PriorityClass, String> {
        Ok(PriorityClass {
            gaps: Times::exponential(self.arrivals.seconds(size)?),
            service: Times { mean: self.service.seconds(size)?, spread: self.spread },
        })
    }
}

/// Parses a percentile: above 0, below 100.
///
/// # Errors
/// What to write.
pub fn percent(text: &str) -> Result<f64, String> {
    let value = text.parse().ok().filter(|p: &f64| *p > 0.0 && *p < 100.0);
    value.ok_or_else(|| {
        format!("'{text}' is not a percentile: write a number above 0 and below 100, such as 99.9")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paces_are_read_in_every_unit() {
        for (text, seconds) in [
            ("800kpps", 1.25e-6),
            ("1.25Mpps", 0.8e-6),
            ("4/ms", 0.25e-3),
            ("3 /s", 1.0 / 3.0),
            ("1us", 1e-6),
            ("2pps", 0.5),
        ] {
            let read: Pace = text.parse().expect(text);
            assert!((read.seconds(None).expect(text) / seconds - 1.0).abs() < 1e-12, "{text}");
        }
        let bits: Pace = "10Gbit".parse().expect("a rate");
        assert!((bits.seconds(Some("1250B".parse().expect("a size"))).expect("a size") - 1e-6).abs() < 1e-18);
        assert!(bits.seconds(None).expect_err("no size").contains("--size"));
        for wrong in ["", "5", "0us", "-1pps", "0pps", "1/0s", "1/week", "fast"] {
            assert!(wrong.parse::<Pace>().expect_err(wrong).contains("write a rate such as"), "{wrong}");
        }
    }

    #[test]
    fn distributions_survive_their_text() {
        for spread in [
            LawSpread::Constant,
            LawSpread::Exponential,
            LawSpread::Erlang(4),
            LawSpread::Hyper(2.5),
            LawSpread::Variation(0.5),
        ] {
            assert_eq!(spread.to_string().parse(), Ok(spread));
        }
        for wrong in ["constant:2", "erlang", "erlang:0", "hyper:0.5", "cv2:-1", "cv2:nan", "normal"] {
            assert!(wrong.parse::<LawSpread>().expect_err(wrong).contains("write constant"), "{wrong}");
        }
    }

    #[test]
    fn stations_and_classes_name_their_parts() {
        let station: StationText = "4us*2".parse().expect("a station");
        assert_eq!(station, StationText { service: Pace::Each(4e-6), servers: 2 });
        assert!("4us*0".parse::<StationText>().is_err() && "4us*".parse::<StationText>().is_err());
        let class: ClassText = "200kpps,1us,erlang:3".parse().expect("a class");
        assert_eq!(class.spread, LawSpread::Erlang(3));
        assert!("200kpps".parse::<ClassText>().expect_err("one part").contains("ARRIVALS,SERVICE"));
        assert!(percent("100").is_err() && percent("0").is_err() && percent("99.9") == Ok(99.9));
    }
}
