// Each setting and each command option of release 0.3.0 is still accepted, with the same default. The exceptions are
// listed here and in CHANGELOG.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { run } from '../../cli/main.ts'
import { type Config, readConfig } from '../../src/config.ts'

/** The options that the `--help` of that release listed. */
const OPTIONS: Record<string, string[]> = JSON.parse(
  readFileSync(join(import.meta.dirname, 'release-0-3/options.json'), 'utf8'),
)

/** Each setting that docs/operating.md of that release lists, with a value that it could have. */
const SETTINGS: Record<string, string> = {
  DATABASE_URL: 'postgres://a:b@db:5432/tokenmill',
  REDIS_URL: 'redis://:p@redis:6379',
  REPORTS_URL: 's3://bucket/reports',
  TOKENMILL_AUDIENCE: 'mill',
  TOKENMILL_BATCH_BODY_MB: '64',
  TOKENMILL_DATA_DIR: '/data',
  TOKENMILL_DRY_RUN_ROWS_MAX: '7',
  TOKENMILL_EMBEDDED: '1',
  TOKENMILL_GATEWAY_INFLIGHT: '9',
  TOKENMILL_GATEWAY_TIMEOUT_SECONDS: '12',
  TOKENMILL_GUESSES_MAX: '3',
  TOKENMILL_HTTP_HOST: '0.0.0.0',
  TOKENMILL_HTTP_PORT: '8443',
  TOKENMILL_JWT_ISSUERS: 'https://issuer.example=https://issuer.example/jwks',
  TOKENMILL_KEK_FILE: '/keys/kek',
  TOKENMILL_LOCAL_SCHEMES: 'GIROCARD',
  TOKENMILL_LOCK_SECONDS: '30',
  TOKENMILL_LOG_LEVEL: 'debug',
  TOKENMILL_METRICS_PORT: '9464',
  TOKENMILL_PREFIX: '{mill}',
  TOKENMILL_PRIVATE_HOSTS: 'directory.internal:8443',
  TOKENMILL_PROCESSES: '2',
  TOKENMILL_RATE_LIMIT: '600',
  TOKENMILL_RECEIPT_DAYS: '30',
  TOKENMILL_REPORT_DAYS: '31',
  TOKENMILL_RESEND_SECONDS: '5',
  TOKENMILL_SCHEDULE_LATE_MINUTES: '45',
  TOKENMILL_SCHEME_FILE: '/etc/schemes.json',
  TOKENMILL_THIRD_PARTY_TYPES: 'ACME',
  TOKENMILL_THREE_DS_OPERATOR_ID: 'op',
  TOKENMILL_THREE_DS_PORT: '9081',
  TOKENMILL_THREE_DS_REF_NUMBER: 'ref',
  TOKENMILL_THREE_DS_TIMEOUT_SECONDS: '5',
  TOKENMILL_THREE_DS_URL: 'https://3ds.example',
}

const TLS = { TOKENMILL_TLS_CERT: '/tls/cert.pem', TOKENMILL_TLS_KEY: '/tls/key.pem' }

const textOf = (config: Config) =>
  JSON.stringify(config, (_, value: unknown) => (value instanceof Map ? [...value] : value))

/** By command: options whose default has changed since. A batch that was begun before keeps its chunks all the same. */
const CHANGED: Partial<Record<string, readonly string[]>> = { migrate: ['--chunk <n>', '--in-flight <n>'] }

describe('what release 0.3.0 documents', () => {
  it.each(Object.entries(SETTINGS))('is read: %s=%s', (name, value) => {
    expect(textOf(readConfig({ [name]: value }))).not.toBe(textOf(readConfig({})))
  })

  it('is read: a certificate and its key', () => {
    expect(readConfig(TLS).tls).toEqual({ certFile: '/tls/cert.pem', keyFile: '/tls/key.pem' })
  })

  it.each(Object.entries(OPTIONS))('is an option still: %s', async (command, options) => {
    const help = (await helpOf(command.split(' '))).replace(/\s+/g, ' ')
    const gone = options.filter(option => {
      // The name of a value may be another: `<client>` where only a file was taken.
      const [, flags = '', value] = /^(.*?)(?:[^ ]*>)?(?: \(default: (.*)\))?$/.exec(option) ?? []
      const at = help.indexOf(` ${flags}`)
      if (at < 0) return true
      if (CHANGED[command]?.some(name => option.startsWith(`${name} `))) return false
      return value !== undefined && !help.slice(at).includes(`default: ${value}`)
    })
    expect(gone).toEqual([])
  })
})

async function helpOf(words: readonly string[]): Promise<string> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  const parts: string[] = []
  stdout.on('data', part => parts.push(String(part)))
  expect(await run([...words, '--help'], { env: {}, stdin: process.stdin, stdout, stderr })).toBe(0)
  return parts.join('')
}
