// AWS Signature Version 4, as KMS checks it: the request is computed anew and must give the signature that it carries.
// It knows one pair of credentials.
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

export const CREDENTIALS = { id: 'AKIASIMULATEDKMS0000', secret: 'simulated-secret-access-key-of-no-account' }
const SKEW_MS = 5 * 60_000
const FORM =
  /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([a-z0-9-]+)\/kms\/aws4_request, ?SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})$/

export interface SignedRequest {
  method: string
  headers: IncomingHttpHeaders
  body: Buffer
}

/** The region that the request is signed for, or AWS's code of what is wrong. */
export function checkSignature(request: SignedRequest, now: number): { region: string } | { code: string } {
  const { headers } = request
  const found = FORM.exec(headers.authorization ?? '')
  if (!found)
    return { code: headers.authorization ? 'IncompleteSignatureException' : 'MissingAuthenticationTokenException' }
  const [, id, day = '', region = '', signed = '', signature = ''] = found
  if (id !== CREDENTIALS.id) return { code: 'UnrecognizedClientException' }
  const at = String(headers['x-amz-date'] ?? '')
  if (!at.startsWith(day) || Math.abs(timeOf(at) - now) > SKEW_MS) return { code: 'InvalidSignatureException' }
  const names = signed.split(';')
  if (!names.includes('host') || !names.includes('x-amz-date')) return { code: 'IncompleteSignatureException' }
  const scope = `${day}/${region}/kms/aws4_request`
  const text = ['AWS4-HMAC-SHA256', at, scope, sha256(canonicalOf(request, names))].join('\n')
  const key = [day, region, 'kms', 'aws4_request'].reduce<string | Buffer>(
    (last, part) => createHmac('sha256', last).update(part).digest(),
    `AWS4${CREDENTIALS.secret}`,
  )
  const expected = createHmac('sha256', key).update(text).digest()
  return timingSafeEqual(expected, Buffer.from(signature, 'hex')) ? { region } : { code: 'InvalidSignatureException' }
}

/** KMS has one path and no query. */
function canonicalOf({ method, headers, body }: SignedRequest, names: string[]): string {
  const lines = names.map(
    name =>
      `${name}:${String(headers[name] ?? '')
        .trim()
        .replace(/ +/g, ' ')}\n`,
  )
  return [method, '/', '', lines.join(''), names.join(';'), sha256(body)].join('\n')
}

/** `20260102T030405Z` */
function timeOf(text: string): number {
  return Date.parse(text.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'))
}

function sha256(data: string | Buffer): string {
  return createHash('sha256').update(data).digest('hex')
}
