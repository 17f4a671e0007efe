// Tells private addresses: loopback, private, link-local, shared, metadata, reserved, and IPv6 addresses that contain
// an IPv4 address. Requests to a URL that a client chose go to them only if the operator permits the host
// (TOKENMILL_PRIVATE_HOSTS). No host name is resolved here.
import { BlockList, isIP } from 'node:net'

/**
 * IANA's special-purpose registry for IPv4, multicast, and Azure's platform service (168.63.129.16), whose address is
 * public.
 */
const FORBIDDEN_IPV4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '168.63.129.16/32',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
]

/**
 * Global unicast. The next list has the ranges within it that aren't global: Teredo and its neighbours, documentation,
 * 6to4.
 */
const GLOBAL_IPV6 = ['2000::/3']
const FORBIDDEN_IPV6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20']

const forbidden4 = blockList(FORBIDDEN_IPV4, 'ipv4')
const global6 = blockList(GLOBAL_IPV6, 'ipv6')
const forbidden6 = blockList(FORBIDDEN_IPV6, 'ipv6')

function blockList(ranges: readonly string[], family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList()
  for (const range of ranges) {
    const [network = '', prefix] = range.split('/')
    list.addSubnet(network, Number(prefix), family)
  }
  return list
}

/** False only for a global unicast address. A text that is no address, or that has a zone, counts as private. */
export function isPrivateAddress(address: string): boolean {
  const family = isIP(address)
  if (family === 4) return forbidden4.check(address, 'ipv4')
  if (family !== 6 || address.includes('%')) return true
  return !global6.check(address, 'ipv6') || forbidden6.check(address, 'ipv6')
}
