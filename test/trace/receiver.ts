// An OTLP/HTTP receiver like a collector: it decodes the protobuf, and keeps the bytes so that a test can search them.
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gunzipSync } from 'node:zlib'
import { until } from '../support/until.ts'

export interface ReceivedSpan {
  name: string
  kind: number
  traceId: string
  spanId: string
  parentId: string
  /** OTLP's status code; 2 means error. */
  status: number
  statusMessage: string
  events: number
  attributes: Record<string, string | number>
  links: { traceId: string; spanId: string }[]
  /** The attributes of the process. */
  resource: Record<string, string | number>
}

export interface Receiver {
  url: string
  spans: ReceivedSpan[]
  /** All bodies, one after the other. */
  bytes(): Buffer
  headers: IncomingHttpHeaders[]
  /** The answer to further requests; undefined: they get no answer. */
  answer: { status: number } | undefined
  /** Waits for the first span for which `is` holds. */
  span(what: string, is: (span: ReceivedSpan) => boolean): Promise<ReceivedSpan>
  close(): Promise<void>
}

export async function openReceiver(): Promise<Receiver> {
  const bodies: Buffer[] = []
  const server = createServer((request, response) => {
    const parts: Buffer[] = []
    request.on('data', part => parts.push(part))
    request.on('end', () => {
      const raw = Buffer.concat(parts)
      const body = request.headers['content-encoding'] === 'gzip' ? gunzipSync(raw) : raw
      receiver.headers.push(request.headers)
      if (!receiver.answer) return
      if (request.url === '/v1/traces' && receiver.answer.status === 200) {
        bodies.push(body)
        receiver.spans.push(...spansOf(body))
      }
      response.writeHead(receiver.answer.status, { 'content-type': 'application/x-protobuf' }).end()
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const receiver: Receiver = {
    url: `http://127.0.0.1:${port}`,
    spans: [],
    bytes: () => Buffer.concat(bodies),
    headers: [],
    answer: { status: 200 },
    span: (what, is) => until(async () => receiver.spans.find(is), { what }),
    async close() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
  return receiver
}

type Field = number | bigint | Buffer
type Message = Map<number, Field[]>

/** Protobuf's wire format: varints, fixed words, and bytes that may be messages. */
function read(bytes: Buffer): Message {
  const fields: Message = new Map()
  let at = 0
  const varint = () => {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++] ?? 0
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
  }
  while (at < bytes.length) {
    const tag = Number(varint())
    const [field, type] = [tag >> 3, tag & 7]
    let value: Field
    if (type === 0) value = varint()
    else {
      const length = type === 1 ? 8 : type === 5 ? 4 : Number(varint())
      value = bytes.subarray(at, at + length)
      at += length
    }
    fields.set(field, [...(fields.get(field) ?? []), value])
  }
  return fields
}

const all = (message: Message, field: number) => (message.get(field) ?? []).filter(one => Buffer.isBuffer(one))
const one = (message: Message, field: number) => all(message, field)[0] ?? Buffer.alloc(0)
const int = (message: Message, field: number) => Number(message.get(field)?.[0] ?? 0)

/** `opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest`. */
function spansOf(body: Buffer): ReceivedSpan[] {
  return all(read(body), 1).flatMap(bytes => {
    const ofProcess = read(bytes)
    const resource = attributesOf(all(read(one(ofProcess, 1)), 1))
    return all(ofProcess, 2).flatMap(scope => all(read(scope), 2).map(span => spanOf(read(span), resource)))
  })
}

function spanOf(span: Message, resource: ReceivedSpan['resource']): ReceivedSpan {
  const status = read(one(span, 15))
  return {
    name: one(span, 5).toString(),
    kind: int(span, 6),
    traceId: one(span, 1).toString('hex'),
    spanId: one(span, 2).toString('hex'),
    parentId: one(span, 4).toString('hex'),
    status: int(status, 3),
    statusMessage: one(status, 2).toString(),
    events: all(span, 11).length,
    attributes: attributesOf(all(span, 9)),
    links: all(span, 13).map(bytes => {
      const link = read(bytes)
      return { traceId: one(link, 1).toString('hex'), spanId: one(link, 2).toString('hex') }
    }),
    resource,
  }
}

function attributesOf(pairs: Buffer[]): Record<string, string | number> {
  return Object.fromEntries(
    pairs.map(bytes => {
      const pair = read(bytes)
      const value = read(one(pair, 2))
      return [one(pair, 1).toString(), value.has(3) ? int(value, 3) : one(value, 1).toString()]
    }),
  )
}
