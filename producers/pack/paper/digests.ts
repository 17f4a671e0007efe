// The digests by which a PDF belongs to a pack, in the PDF's document information: of the JSON, and of the record of the
// counterparty's signature if that is drawn in it.

export interface Digests {
  /** SHA-256 of the JSON, lower-case hex. */
  json: string
  /** SHA-256 of the record of the counterparty's signature. */
  countersignature?: string | undefined
}

export function digestsText({ json, countersignature }: Digests): string {
  return `SHA-256 of the JSON ${json}${countersignature === undefined ? '' : `, of the countersignature ${countersignature}`}`
}

/** The library writes the subject as an object of its own. */
const SUBJECT =
  /\d+ 0 obj\n\(SHA-256 of the JSON ([0-9a-f]{64})(?:, of the countersignature ([0-9a-f]{64}))?\)\nendobj/g

/** What the PDF's document information says; undefined if it names no digests. The PDF's signature is checked elsewhere. */
export function digestsIn(pdf: Buffer): Digests | undefined {
  const [found, ...others] = pdf.toString('latin1').matchAll(SUBJECT)
  const [, json, countersignature] = found ?? []
  return json === undefined || others.length > 0 ? undefined : { json, countersignature }
}
