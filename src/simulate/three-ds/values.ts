// The values that card networks send with an outcome: the authentication value in each network's form, and the ECI. The
// bytes are derived from the transaction, so that a repeat gets the same answer.
import { createHash } from 'node:crypto'

/** Networks by the first digits of the card number. A co-badged card counts as its co-badge's network. */
const NETWORKS = [
  ['mastercard', /^(5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720)/],
  ['maestro', /^(50|5[6-8]|6304|6390|67)/],
  ['amex', /^3[47]/],
  ['jcb', /^(35|2131|1800|333[78])/],
  ['diners', /^3(0[0-5]|[689])/],
  ['discover', /^6(011|4[4-9]|5)/],
  ['upi', /^(62|81)/],
  ['visa', /^4/],
] as const
type SimulatedNetwork = (typeof NETWORKS)[number][0]

export function networkOf(number: string): SimulatedNetwork {
  return NETWORKS.find(([, range]) => range.test(number))?.[0] ?? 'visa'
}

export function isMastercards(network: SimulatedNetwork): boolean {
  return network === 'mastercard' || network === 'maestro'
}

/** The forms of the authentication value: the network's own, or one that a rehearsal asks for. */
export const VALUE_FORMS = ['network', 'none', 'spa1', 'hex', 'long', 'odd'] as const
export type ValueForm = (typeof VALUE_FORMS)[number]

/** The authentication value. `seed`: the transaction from which the bytes are derived. */
export function authenticationValueOf(network: SimulatedNetwork, form: ValueForm, seed: string): string | undefined {
  const bytes = (length: number) => createHash('sha256').update(`value ${seed}`).digest().subarray(0, length)
  switch (form) {
    case 'network':
      // Mastercard: SPA2, 21 bytes, 28 characters without padding, `k` in front. Other networks: 20 bytes, padded.
      return isMastercards(network) ? withFirst(0x90, bytes(21)) : bytes(20).toString('base64')
    case 'spa1':
      // Mastercard's older form (SPA1): 20 bytes, padded, `j` in front.
      return withFirst(0x8c, bytes(20))
    case 'hex':
      return bytes(20).toString('hex')
    case 'long':
      return bytes(32).toString('hex').repeat(63).slice(0, 4_000)
    case 'odd':
      return '!'
    case 'none':
      return undefined
  }
}

function withFirst(byte: number, bytes: Buffer): string {
  return Buffer.concat([Buffer.of(byte), bytes.subarray(1)]).toString('base64')
}

/** The ECI. `dataOnly`: the status is U because the network only took the data. */
export function eciOf(
  network: SimulatedNetwork,
  { status, category, dataOnly }: { status: string; category: string; dataOnly: boolean },
): string {
  if (!isMastercards(network)) return status === 'Y' ? '05' : status === 'A' ? '06' : '07'
  if (category === '02') return status === 'Y' ? 'N2' : 'N0'
  if (dataOnly) return '04'
  return { Y: '02', A: '01', I: '06' }[status] ?? '00'
}
