// A share of a key as text that a person can print, read aloud and type: six lines of Crockford's base32, each with its
// own check, so that a wrong line is named at once. The whole share has a checksum, too. It doesn't split or join keys.
import { createHash } from 'node:crypto'
import { Secret } from '../../secret.ts'

/** One share of a key. `bytes` is the secret; the rest is public. */
export interface KeyShare {
  /** 16 hexadecimal digits: the shares that were made together. */
  setId: string
  /** How many shares restore the key. */
  threshold: number
  /** How many shares the set has. */
  of: number
  /** From 1 to `of`. */
  index: number
  /** The id of the key: `kek-` and 16 hexadecimal digits. */
  kekId: string
  /** One byte more than the key has: the last byte is the x of the polynomial's point. */
  bytes: Secret<Buffer>
}

/** Why a text isn't a share. `lines`: the numbers of the lines that are wrong or missing; empty if each is right. */
export interface Unreadable {
  lines: number[]
}

export const HEADING = 'tokenmill-kek-share-v1'
export const LINES = 6
export const SHARE_BYTES = 33
const FORM = 1
const ID_BYTES = 8
const LINE_BYTES = 10
const CHECKSUM_BYTES = 7
const KEK_ID = /^kek-([0-9a-f]{16})$/
/** Crockford's base32: no I, L, O or U. */
const LETTERS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
/** 80 bits as letters, and 20 bits of check. */
const LINE_LETTERS = 16
const CHECK_LETTERS = 4

/** The share's six lines, each with its number. */
export function linesOf(share: KeyShare): string[] {
  const kekId = KEK_ID.exec(share.kekId)?.[1] ?? ''
  const content = Buffer.concat([
    Buffer.from([FORM]),
    Buffer.from(share.setId, 'hex'),
    Buffer.from([share.threshold, share.of, share.index]),
    Buffer.from(kekId, 'hex'),
    share.bytes.reveal(),
  ])
  const all = Buffer.concat([content, checksum(content)])
  const lines = Array.from({ length: LINES }, (_, at) => {
    const letters = encode(all.subarray(at * LINE_BYTES, (at + 1) * LINE_BYTES))
    const groups = letters.match(/.{4}/g) ?? []
    return `${at + 1}: ${groups.join(' ')}  ${checkOf(at + 1, letters)}`
  })
  content.fill(0)
  all.fill(0)
  return lines
}

/**
 * The letters of one line without its check; undefined if the check is wrong. Small letters, other spaces, O for 0 and
 * I or L for 1 are accepted, and the line's number may be left out.
 */
export function readLine(text: string, number: number): string | undefined {
  const bare = text.replace(/^\s*(\d)\s*:/, (whole, digit: string) => (Number(digit) === number ? '' : whole))
  const letters = bare.toUpperCase().replace(/[\s-]/g, '').replace(/O/g, '0').replace(/[IL]/g, '1')
  if (letters.length !== LINE_LETTERS + CHECK_LETTERS) return undefined
  const data = letters.slice(0, LINE_LETTERS)
  return [...letters].every(letter => LETTERS.includes(letter)) && checkOf(number, data) === letters.slice(LINE_LETTERS)
    ? data
    : undefined
}

/** The share in `text`: the heading is optional, empty lines and lines that begin with # are left out. */
export function readShare(text: string): KeyShare | Unreadable {
  const lines = text
    .split(/\r?\n/)
    .map(line => line.trim())
    .filter(line => line !== '' && !line.startsWith('#') && line !== HEADING)
  const read = Array.from({ length: LINES }, (_, at) => readLine(lines[at] ?? '', at + 1))
  const wrong = read.flatMap((line, at) => (line === undefined ? [at + 1] : []))
  if (wrong.length > 0 || lines.length !== LINES) return { lines: wrong }
  return parse(Buffer.concat(read.map(line => decode(line ?? '')))) ?? { lines: [] }
}

export function isUnreadable(read: KeyShare | Unreadable): read is Unreadable {
  return 'lines' in read
}

function parse(all: Buffer): KeyShare | undefined {
  const content = all.subarray(0, all.length - CHECKSUM_BYTES)
  if (!checksum(content).equals(all.subarray(content.length))) return undefined
  const [form, threshold = 0, of = 0, index = 0] = [content[0], ...content.subarray(1 + ID_BYTES)]
  const idAt = 1 + ID_BYTES + 3
  if (form !== FORM || threshold < 2 || of < threshold || index < 1 || index > of) return undefined
  const share = {
    setId: content.toString('hex', 1, 1 + ID_BYTES),
    threshold,
    of,
    index,
    kekId: `kek-${content.toString('hex', idAt, idAt + ID_BYTES)}`,
    bytes: new Secret(Buffer.from(content.subarray(idAt + ID_BYTES))),
  }
  all.fill(0)
  return share
}

function checksum(content: Buffer): Buffer {
  return createHash('sha256').update('tokenmill share').update(content).digest().subarray(0, CHECKSUM_BYTES)
}

function checkOf(number: number, letters: string): string {
  const digest = createHash('sha256').update(`tokenmill share line ${number} ${letters}`).digest()
  return encode(digest.subarray(0, LINE_BYTES)).slice(0, CHECK_LETTERS)
}

function encode(bytes: Buffer): string {
  const bits = [...bytes].map(byte => byte.toString(2).padStart(8, '0')).join('')
  return (bits.match(/.{5}/g) ?? []).map(five => LETTERS[Number.parseInt(five, 2)]).join('')
}

function decode(letters: string): Buffer {
  const bits = [...letters].map(letter => LETTERS.indexOf(letter).toString(2).padStart(5, '0')).join('')
  return Buffer.from((bits.match(/.{8}/g) ?? []).map(byte => Number.parseInt(byte, 2)))
}
