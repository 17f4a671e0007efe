// The places of segments: a folder, or a bucket with object lock.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { assertLocked, openAuditPlace } from '../../src/audit/place.ts'
import { ConfigError, readConfig } from '../../src/config.ts'
import { type S3Server, startS3 } from '../support/s3-server.ts'

const DAY_MS = 86_400_000
const AUDIT_URL = 's3://audit-bucket/tokenmill'

describe('a bucket', () => {
  let locking: S3Server
  let plain: S3Server
  beforeAll(async () => {
    locking = await startS3({ lock: true })
    plain = await startS3()
    Object.assign(process.env, locking.env)
  })
  afterAll(async () => {
    await locking?.close()
    await plain?.close()
  })

  it('is refused if its objects can be removed, and not if it is away', async () => {
    await expect(assertLocked({ auditUrl: AUDIT_URL, endpoint: plain.url })).rejects.toThrow(ConfigError)
    await expect(assertLocked({ auditUrl: AUDIT_URL, endpoint: plain.url })).rejects.toThrow(
      /^AUDIT_URL: the bucket audit-bucket has no object lock/,
    )
    await assertLocked({ auditUrl: AUDIT_URL, endpoint: locking.url })
    await assertLocked({ auditUrl: AUDIT_URL, endpoint: 'http://127.0.0.1:9' })
  })

  it('gets segments that nobody can remove while the audit is kept', async () => {
    const place = openAuditPlace({ auditUrl: AUDIT_URL, dataDir: '/nowhere', endpoint: locking.url })
    await place.put(7, ['line one\n', 'line two\n'])
    const [name = ''] = (await place.list()).get(7) ?? []
    expect(await place.read(name)).toBe('line one\nline two\n')
    expect(place).toMatchObject({ isOutside: true, name: 's3://audit-bucket/tokenmill' })
    const { mode, until } = locking.locked.get(`audit-bucket/tokenmill/${name}`) ?? { mode: '', until: '' }
    expect(mode).toBe('COMPLIANCE')
    expect(Date.parse(until)).toBeGreaterThan(Date.now() + 399 * DAY_MS)
    place.close()
  })
})

it('a folder keeps a segment that differs beside the one that it has', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'tokenmill-place-'))
  const place = openAuditPlace({ auditUrl: pathToFileURL(folder).href, dataDir: folder, endpoint: undefined })
  await place.put(1, ['one\n'])
  await place.put(1, ['one\n'])
  await place.put(12, ['other\n'])
  await place.put(1, ['changed\n'])
  const found = await place.list()
  expect([...found.keys()]).toEqual([1, 12])
  expect(found.get(1)).toHaveLength(2)
  await rm(folder, { recursive: true })
})

it('AUDIT_URL is a folder or a bucket, and no syslog', () => {
  for (const url of ['file:/audit', 'file:///audit', AUDIT_URL])
    expect(readConfig({ AUDIT_URL: url }).auditUrl).toBe(url)
  for (const url of ['syslog://host', 'syslog+tls://host:6514', 'https://host', 'file://host/x', '/audit'])
    expect(() => readConfig({ AUDIT_URL: url })).toThrow(/^AUDIT_URL: .* syslog is not supported$/)
})
