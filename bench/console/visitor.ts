// People who use the console over HTTP, one after the other, on kept connections. A bench makes their sessions in the store; signing
// in isn't what is measured.
import { randomUUID } from 'node:crypto'
import { Agent, request } from 'node:http'
import type { OpenedVault } from '../../cli/open/open.ts'
import { makeCookie } from '../../producers/console/session/cookie.ts'
import { grantPerson } from '../../src/acts/grants.ts'
import * as sessions from '../../src/store/console/sessions.ts'
import * as persons from '../../src/store/person/persons.ts'

export interface Answered {
  status: number
  location: string | undefined
  text: string
  /** Until the last byte. */
  ms: number
}

export type Ask = (method: 'GET' | 'POST', path: string, form?: Record<string, string>) => Promise<Answered>

/** Makes people with a session each; returns their cookies. `entities` null: they see everything. */
export async function makePeople(
  { store, ring }: Pick<OpenedVault, 'store' | 'ring'>,
  count: number,
  entities: string[] | null,
): Promise<string[]> {
  const cookies: string[] = []
  for (let n = 0; n < count; n += 1) {
    const personId = randomUUID()
    const person = { personId, name: `person ${personId}`, roles: ['ADMIN' as const], entities, isLocal: false }
    await persons.insert(store, person)
    await grantPerson(store, ring, person)
    const { value, hash } = makeCookie()
    await sessions.insert(store, {
      ...{ sessionHash: hash, personId, credentialId: null, address: '127.0.0.1', isLocal: false },
    })
    cookies.push(`tokenmill-console=${value}`)
  }
  return cookies
}

/** Asks as these people, in turn: each of them may search and look for failed jobs a limited number of times a minute. */
export function openVisitor(port: number, cookies: readonly string[]): { ask: Ask; close(): void } {
  const agent = new Agent({ keepAlive: true, maxSockets: 8 })
  const origin = `http://localhost:${port}`
  let turn = 0
  return {
    close: () => agent.destroy(),
    ask: (method, path, form) =>
      new Promise((resolve, reject) => {
        const body = form && new URLSearchParams(form).toString()
        turn += 1
        const headers = {
          host: `localhost:${port}`,
          cookie: cookies[turn % cookies.length] ?? '',
          ...(method === 'POST' && { origin, 'sec-fetch-site': 'same-origin' }),
          ...(body !== undefined && {
            'content-type': 'application/x-www-form-urlencoded',
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
          resolve({ status, location: told.location, text: Buffer.concat(parts).toString(), ms })
        })
        asked.end(body)
      }),
  }
}
