// People who use the console over HTTP, one after the other, on kept connections. A bench makes their sessions in the store; signing
// in isn't what is measured.
import { randomUUID } from 'node:crypto'
import { Agent, request } from 'node:http'
import type { OpenedVault } from '../../cli/open/open.ts'
import { makeCookie } from '../../producers/console/server/cookie.ts'
import { grantPerson } from '../../src/acts/person-grants.ts'
import * as sessions from '../../src/store/console/sessions.ts'
import * as persons from '../../src/store/person/persons.ts'

type Vault = Pick<OpenedVault, 'store' | 'ring'>

export interface Answered {
  status: number
  location: string | undefined
  /** The cookie that it sets. */
  cookie: string | undefined
  text: string
  /** Until the last byte. */
  ms: number
}

export interface Asked {
  cookie?: string | undefined
  form?: Record<string, string> | undefined
  json?: unknown
}

export interface Caller {
  call(method: 'GET' | 'POST', path: string, asked?: Asked): Promise<Answered>
  close(): void
}

export type Ask = (method: 'GET' | 'POST', path: string, form?: Record<string, string>) => Promise<Answered>

/** Makes a person. `entities` null: who sees everything. */
export async function makePerson({ store, ring }: Vault, entities: string[] | null): Promise<string> {
  const personId = randomUUID()
  const person = { personId, name: `person ${personId}`, roles: ['ADMIN' as const], entities, isLocal: false }
  await persons.insert(store, person)
  await grantPerson(store, ring, person)
  return personId
}

/** Makes people with a session each; returns their cookies. `entities` null: they see everything. */
export async function makePeople(vault: Vault, count: number, entities: string[] | null): Promise<string[]> {
  const cookies: string[] = []
  for (let n = 0; n < count; n += 1) {
    const personId = await makePerson(vault, entities)
    const { value, hash } = makeCookie()
    const from = { address: '127.0.0.1', isLocal: false }
    await sessions.insert(vault.store, { sessionHash: hash, personId, credentialId: null, ...from })
    cookies.push(`tokenmill-console=${value}`)
  }
  return cookies
}

/** Asks as these people, in turn: each of them may search and look for failed jobs a limited number of times a minute. */
export function openVisitor(port: number, cookies: readonly string[]): { ask: Ask; close(): void } {
  const { call, close } = openCaller(port)
  let turn = 0
  return {
    close,
    ask(method, path, form) {
      turn += 1
      return call(method, path, { form, cookie: cookies[turn % cookies.length] })
    },
  }
}

export function openCaller(port: number): Caller {
  const agent = new Agent({ keepAlive: true, maxSockets: 32 })
  const host = `localhost:${port}`
  return {
    close: () => agent.destroy(),
    call: (method, path, { cookie, form, json } = {}) =>
      new Promise((resolve, reject) => {
        const body = form ? new URLSearchParams(form).toString() : json === undefined ? undefined : JSON.stringify(json)
        const headers = {
          host,
          ...(cookie !== undefined && { cookie }),
          ...(method === 'POST' && { origin: `http://${host}`, 'sec-fetch-site': 'same-origin' }),
          ...(body !== undefined && {
            'content-type': form ? 'application/x-www-form-urlencoded' : 'application/json',
            'content-length': String(Buffer.byteLength(body)),
          }),
        }
        const began = performance.now()
        const asked = request({ agent, host: 'localhost', port, method, path, headers })
        asked.on('error', reject)
        asked.on('response', async response => {
          const parts: Buffer[] = []
          for await (const part of response) parts.push(part as Buffer)
          const ms = performance.now() - began
          const { statusCode: status = 0, headers: told } = response
          const [set] = told['set-cookie'] ?? []
          const text = Buffer.concat(parts).toString()
          resolve({ status, location: told.location, cookie: set?.split(';')[0], text, ms })
        })
        asked.end(body)
      }),
  }
}
