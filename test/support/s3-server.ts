// A bucket over HTTP with the requests that reports and the audit make: PutObject, also with object lock, GetObject
// with ranges, DeleteObject, ListObjectsV2, GetObjectLockConfiguration. It checks the digest that comes with an object.
// It refuses a request without a signature, and doesn't verify signatures.
import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'

export interface S3Server {
  url: string
  /** Settings that its clients need. */
  env: Record<string, string>
  objects: Map<string, Buffer>
  /** The objects that nobody can remove, with the mode of their lock and its end. */
  locked: Map<string, { mode: string; until: string }>
  close(): Promise<void>
}

/** `lock`: whether buckets have object lock. */
export async function startS3({ lock = false } = {}): Promise<S3Server> {
  const locked: S3Server['locked'] = new Map()
  const objects = new Map<string, Buffer>()
  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.writeHead(500).end())
  })

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://s3')
    const name = decodeURIComponent(url.pathname.slice(1))
    const refuse = (status: number, code: string) =>
      response.writeHead(status, { 'content-type': 'application/xml' }).end(`<Error><Code>${code}</Code></Error>`)
    if (!/^AWS4-HMAC-SHA256 /.test(request.headers.authorization ?? '')) return void refuse(403, 'AccessDenied')
    if (url.searchParams.get('list-type') === '2') return list(url, name, response)
    if (url.searchParams.has('object-lock')) {
      if (!lock) return void refuse(404, 'ObjectLockConfigurationNotFoundError')
      const text = '<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled></ObjectLockConfiguration>'
      return void response.writeHead(200, { 'content-type': 'application/xml' }).end(text)
    }
    if (request.method === 'PUT') {
      const body = await buffer(request)
      const digest = createHash('sha256').update(body).digest('base64')
      if (request.headers['x-amz-checksum-sha256'] !== digest) return void refuse(400, 'BadDigest')
      const mode = request.headers['x-amz-object-lock-mode']
      if (mode !== undefined && !lock) return void refuse(400, 'InvalidRequest')
      objects.set(name, body)
      if (mode !== undefined)
        locked.set(name, {
          mode: String(mode),
          until: String(request.headers['x-amz-object-lock-retain-until-date']),
        })
      return void response.writeHead(200).end()
    }
    if (request.method === 'DELETE') {
      objects.delete(name)
      return void response.writeHead(204).end()
    }
    const found = objects.get(name)
    if (!found) return void refuse(404, 'NoSuchKey')
    const [, start, end] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? []
    if (start === undefined || end === undefined) return void response.writeHead(200).end(found)
    response.writeHead(206, { 'content-range': `bytes ${start}-${end}/${found.length}` })
    response.end(found.subarray(Number(start), Number(end) + 1))
  }

  function list(url: URL, bucket: string, response: ServerResponse): void {
    const prefix = `${bucket.replace(/\/$/, '')}/${url.searchParams.get('prefix') ?? ''}`
    const found = [...objects].filter(([name]) => name.startsWith(prefix))
    const entries = found.map(
      ([name, body]) =>
        `<Contents><Key>${name.slice(name.indexOf('/') + 1)}</Key><Size>${body.length}</Size><LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>`,
    )
    const text = `<?xml version="1.0"?><ListBucketResult><IsTruncated>false</IsTruncated>${entries.join('')}</ListBucketResult>`
    response.writeHead(200, { 'content-type': 'application/xml' }).end(text)
  }

  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    env: { AWS_REGION: 'eu-central-1', AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test' },
    objects,
    locked,
    close: () =>
      new Promise(resolve => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  }
}
