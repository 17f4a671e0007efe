// A self-signed X.509 certificate around an RSA key, encoded as DER here, because Mastercard's packages need a
// certificate and Node makes keys but no certificates. It is for rehearsals only.
import { type KeyObject, randomBytes, sign } from 'node:crypto'

interface CertificateOptions {
  privateKey: KeyObject
  publicKey: KeyObject
  commonName: string
  /** The beginning of its validity, ms since the epoch. */
  now: number
  days: number
}

const DAY_MS = 86_400_000
const SHA256_WITH_RSA = '2a864886f70d01010b'
const COMMON_NAME = '550403'
const SUBJECT_ALT_NAME = '551d11'

/** Makes a certificate; PEM. Its subject alternative names are the common name, `localhost` and 127.0.0.1. */
export function makeCertificate(options: CertificateOptions): string {
  const { privateKey, publicKey, commonName, now, days } = options
  const algorithm = sequence(oid(SHA256_WITH_RSA), der(0x05))
  const name = sequence(der(0x31, sequence(oid(COMMON_NAME), der(0x0c, Buffer.from(commonName)))))
  const names = sequence(
    der(0x82, Buffer.from(commonName)),
    der(0x82, Buffer.from('localhost')),
    der(0x87, Buffer.from([127, 0, 0, 1])),
  )
  const serial = randomBytes(16)
  serial[0] = 0x01
  const signed = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, serial),
    algorithm,
    name,
    sequence(time(now - DAY_MS), time(now + days * DAY_MS)),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(sequence(oid(SUBJECT_ALT_NAME), der(0x04, names)))),
  )
  const signature = sign('sha256', signed, privateKey)
  const certificate = sequence(signed, algorithm, der(0x03, Buffer.from([0]), signature))
  const lines = certificate.toString('base64').match(/.{1,64}/g) ?? []
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`
}

function der(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts)
  return Buffer.concat([Buffer.from([tag]), lengthOf(content.length), content])
}

/** A DER length: one byte below 128, else two bytes after a prefix; nothing here is longer than 64 KiB. */
function lengthOf(bytes: number): Buffer {
  return bytes < 0x80 ? Buffer.from([bytes]) : Buffer.from([0x82, bytes >> 8, bytes & 0xff])
}

const sequence = (...parts: Buffer[]) => der(0x30, ...parts)
const oid = (hex: string) => der(0x06, Buffer.from(hex, 'hex'))

/**
 * A DER GeneralizedTime. The standard wants UTCTime for years before 2050, but Node and Mastercard's packages read this
 * form, too.
 */
function time(ms: number): Buffer {
  return der(0x18, Buffer.from(`${new Date(ms).toISOString().replace(/[-:T]/g, '').slice(0, 14)}Z`))
}
