// The examples of ops/ and docker-compose.yml: the files that they name exist, and the ports are those of the roles. No
// container is started.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { portOf } from '../../src/ops.ts'

const root = join(import.meta.dirname, '../..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const ROLES = ['gateway', 'three-ds', 'scheduler', 'workers', 'console'] as const

describe('docker-compose.yml', () => {
  const compose = read('docker-compose.yml')
  const services = new Map(
    (/^services:\n([\s\S]*?)^# Made by/m.exec(compose)?.[1] ?? '')
      .split(/^ {2}(?=[a-z-]+:$)/m)
      .filter(text => /^[a-z-]+:/.test(text))
      .map(text => [text.slice(0, text.indexOf(':')), text]),
  )

  it('lets no service write to its own root or hold a capability that it doesn’t need', () => {
    expect([...services.keys()].sort()).toEqual(
      [
        ...ROLES,
        'console-login',
        'gateway-login',
        'grafana',
        'postgres',
        'prometheus',
        'redis',
        'upgrade',
        'worker-login',
      ].sort(),
    )
    for (const [name, text] of services) expect(text, name).toMatch(/<<: \*(hardened|tokenmill|working|with-kek)\n/)
    expect(compose).toMatch(/&hardened\n {2}read_only: true\n {2}cap_drop: \[ALL\]\n/)
    expect(compose).not.toMatch(/PASSWORD:|PASSWORD\}/)
  })

  it('gives the key-encryption key to the roles that open cards, and to no other', () => {
    const holders = [...services].filter(([, text]) => /\*(settings-)?with-kek/.test(text)).map(([name]) => name)
    expect(holders).toEqual(['upgrade', 'workers', 'three-ds'])
  })

  it('gives the console its own files only, and everybody the same origin', () => {
    const text = services.get('console') ?? ''
    expect([...text.matchAll(/- ([a-z]+:\/\S+)/g)].map(([, volume]) => volume)).toEqual(['console:/console:ro'])
    expect(text).toContain('secrets: [queue.env]\n')
    expect(text).not.toMatch(/kek|store\.env|logins/)
    expect(compose.match(/TOKENMILL_CONSOLE_ORIGIN/g)).toHaveLength(1)
    expect(/x-tokenmill:[\s\S]*?\n\n/.exec(compose)?.[0]).toContain('TOKENMILL_CONSOLE_ORIGIN')
  })

  it('asks for health at the ports that roles have', () => {
    for (const role of ['workers', 'scheduler', 'console'] as const)
      expect(services.get(role)).toContain(`http://127.0.0.1:${portOf(role, undefined)}/readyz`)
    const targets = ROLES.map(role => `"${role}:${portOf(role, undefined)}"`).join(', ')
    expect(read('ops/compose/prometheus.yml')).toContain(`targets: [${targets}]`)
    for (const role of ROLES)
      expect(read('ops/prometheus/prometheus.yml')).toContain(`127.0.0.1:${portOf(role, undefined)} # ${role}\n`)
  })
})

describe('make-secrets.sh', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tokenmill-secrets-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  const run = () => execFileSync('sh', [join(root, 'ops/compose/make-secrets.sh')], { cwd: folder, env: {} })
  const made = () =>
    Object.fromEntries(
      readdirSync(join(folder, 'secrets')).map(name => [name, readFileSync(join(folder, 'secrets', name), 'utf8')]),
    )

  it('makes every file that docker-compose.yml mounts, with the passwords that the last release had in .env', () => {
    writeFileSync(join(folder, 'docker-compose.yml'), '')
    writeFileSync(join(folder, '.env'), 'POSTGRES_PASSWORD=of1postgres\nREDIS_PASSWORD="of2redis"\n')
    run()
    expect(made()).toEqual({
      'postgres-password': 'of1postgres',
      'redis.conf': 'requirepass of2redis\n',
      'store.env': 'DATABASE_URL=postgres://tokenmill:of1postgres@postgres:5432/tokenmill\n',
      'queue.env': 'REDIS_URL=redis://:of2redis@redis:6379\n',
      'grafana-password': expect.stringMatching(/^[0-9a-f]{48}$/),
    })
    const mounted = [...read('docker-compose.yml').matchAll(/file: \.\/secrets\/(\S+)/g)].map(([, name = '']) => name)
    expect(Object.keys(made()).sort()).toEqual(mounted.sort())
    expect(statSync(join(folder, 'secrets')).mode & 0o777).toBe(0o700)
  })

  it('leaves what is there, and makes what is missing of it anew', () => {
    const before = made()
    rmSync(join(folder, '.env'))
    rmSync(join(folder, 'secrets/store.env'))
    run()
    expect(made()).toEqual(before)
  })
})

describe('nginx.conf', () => {
  const conf = read('ops/proxy/nginx.conf')

  it('holds nothing back of the console’s live path, and passes on the host that the browser named', () => {
    const site = conf.slice(conf.indexOf('server_name console.example.com'))
    expect(site).toContain('proxy_set_header Host $host;')
    const [, path = 'none'] = /location ~ (\S+) \{[^}]*proxy_buffering off;/.exec(site) ?? []
    for (const stream of ['/now/live', '/display/live', '/batches/42/live'])
      expect(new RegExp(path).test(stream)).toBe(true)
    expect(conf.match(/\{/g)?.length).toBe(conf.match(/\}/g)?.length)
  })

  it.each(['location = /oidc/.well-known/capture-keys', 'location /oidc/scheme-notifications/'])(
    'limits what each address may ask without a caller: %s',
    location => {
      const [, zone = 'none'] = /limit_req_zone \$binary_remote_addr zone=(gateway_\w+):/.exec(conf) ?? []
      const [, block = ''] = conf.split(`    ${location} {`)
      expect(block.slice(0, block.indexOf('}'))).toContain(`limit_req zone=${zone} `)
    },
  )
})

describe('the units of systemd', () => {
  it.each(ROLES)('start %s, and don’t start it again with a wrong setting', role => {
    const unit = read(`ops/systemd/tokenmill-${role}.service`)
    expect(unit).toContain(`ExecStart=/usr/bin/node bin/tokenmill.mjs ${role}\n`)
    expect(unit).toContain('RestartPreventExitStatus=64 78\n')
    expect(/^Environment=TOKENMILL_KEK_FILE=/m.test(unit)).toBe(role === 'workers' || role === 'three-ds')
  })
})
