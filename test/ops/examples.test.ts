// The examples of ops/ and docker-compose.yml: the files that they name exist, and the ports are those of the roles. No
// container is started.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
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
