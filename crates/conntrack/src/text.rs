//! Connections as text, in the words of `ovs-appctl dpctl/dump-conntrack`.

use crate::connection::ConnectionInfo;
use crate::tuple::{FlowTuple, ICMP, ICMPV6, SCTP, TCP, UDP};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

impl FlowTuple {
    /// Returns source and destination address.
    pub fn addresses(self) -> [IpAddr; 2] {
        [self.src, self.dst].map(|address| match self.is_v6 {
            true => Ipv6Addr::from_bits(address).into(),
            false => Ipv4Addr::from_bits(address as u32).into(),
        })
    }
}

impl fmt::Display for FlowTuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [src, dst] = self.addresses();
        write!(f, "src={src},dst={dst}")?;
        let (FlowTuple { src_port, dst_port, .. }, (kind, code)) = (self, self.ports());
        match self.protocol {
            _ if self.is_icmp() => write!(f, ",id={src_port},type={kind},code={code}"),
            TCP | UDP | SCTP => write!(f, ",sport={src_port},dport={dst_port}"),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for ConnectionInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.original.protocol {
            ICMP => write!(f, "icmp")?,
            TCP => write!(f, "tcp")?,
            UDP => write!(f, "udp")?,
            ICMPV6 => write!(f, "icmpv6")?,
            SCTP => write!(f, "sctp")?,
            other => write!(f, "{other}")?,
        }
        write!(f, ",orig=({}),reply=({})", self.original, self.reply)?;
        if self.zone != 0 {
            write!(f, ",zone={}", self.zone)?;
        }
        if self.mark != 0 {
            write!(f, ",mark={}", self.mark)?;
        }
        if self.label != 0 {
            write!(f, ",labels={:#x}", self.label)?;
        }
        if let Some((original, reply)) = self.tcp {
            write!(f, ",protoinfo=(state_orig={},state_reply={})", original.name(), reply.name())?;
        }
        if let Some(alg) = self.alg {
            write!(f, ",helper={}", alg.name())?;
        }
        if let Some(parent) = self.parent {
            write!(f, ",parent=({parent})")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alg::Alg;
    use crate::tcp::TcpPhase;
    use fastpath_units::Time;

    #[test]
    fn connections_are_written_as_open_vswitch_does() {
        let original = FlowTuple {
            src: 0x0a00_0001,
            dst: 0x0a00_0002,
            src_port: 4000,
            dst_port: 21,
            protocol: TCP,
            is_v6: false,
        };
        let mut info = ConnectionInfo {
            zone: 1,
            original,
            reply: original.reversed(),
            tcp: Some((TcpPhase::Established, TcpPhase::SynSent)),
            has_reply: true,
            mark: 5,
            label: 16,
            alg: Some(Alg::Ftp),
            parent: None,
            deadline: Time::ZERO,
        };
        assert_eq!(
            info.to_string(),
            "tcp,orig=(src=10.0.0.1,dst=10.0.0.2,sport=4000,dport=21),\
             reply=(src=10.0.0.2,dst=10.0.0.1,sport=21,dport=4000),zone=1,mark=5,labels=0x10,\
             protoinfo=(state_orig=ESTABLISHED,state_reply=SYN_SENT),helper=ftp"
        );
        let original =
            FlowTuple { src: 1, dst: 2, src_port: 7, dst_port: 128 << 8, protocol: ICMPV6, is_v6: true };
        info = ConnectionInfo { zone: 0, original, reply: original.reversed(), tcp: None, mark: 0, ..info };
        (info.label, info.alg, info.parent) = (0, None, Some(original));
        assert_eq!(
            info.to_string(),
            "icmpv6,orig=(src=::1,dst=::2,id=7,type=128,code=0),\
             reply=(src=::2,dst=::1,id=7,type=129,code=0),parent=(src=::1,dst=::2,id=7,type=128,code=0)"
        );
    }
}
