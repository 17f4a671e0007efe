// An installation with the simulated network over HTTP: simulator, workers and gateway.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { editSchemeFile, post, type Stats, statsOf } from '../../scheme/bundle.ts'
import type { Engine } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { type Child, startCommand } from '../../support/process.ts'

export interface Networked {
  installation: Installation
  simulator: Simulator
  close(): Promise<void>
}

export interface Simulator {
  url: string
  stats(): Promise<Stats>
  tokens(): Promise<SimulatedToken[]>
  /** Does something to a token as an issuer. */
  befall(reference: string, deed: Record<string, unknown>): Promise<void>
  notify(url: string | null): Promise<void>
  kill9(): Promise<void>
  /** Starts the simulator again on the same port, with its files. */
  restart(): Promise<void>
}

export interface SimulatedToken {
  reference: string
  state: string
  suspendedBy: string[]
  numberLastFour: string
  lastFour: string
}

export async function openNetworked(
  engine: Engine,
  options: {
    rate?: number
    latencyMs?: number
    timeoutMs?: number
    /** Changes to the scheme file's `mdes`. */
    mdes?: Record<string, unknown>
    settings?: Record<string, string>
  } = {},
): Promise<Networked> {
  const folder = mkdtempSync(join(tmpdir(), 'scheme-token-'))
  const words = ['--data', folder, '--rate', String(options.rate ?? 2_000), '--latency', String(options.latencyMs ?? 0)]
  let child = await start('0')
  const { url, TOKENMILL_SCHEME_FILE: file = '', TOKENMILL_PRIVATE_HOSTS: address = '' } = child.printed
  const editFile = () => editSchemeFile(file, { timeoutMs: options.timeoutMs ?? 10_000, mdes: options.mdes ?? {} })
  editFile()
  const installation = await openInstallation(engine, {
    TOKENMILL_SCHEME_FILE: file,
    TOKENMILL_PRIVATE_HOSTS: address,
    TOKENMILL_PROCESSES: '1',
    ...options.settings,
  })

  async function start(port: string): Promise<{ child: Child; printed: Record<string, string> }> {
    const started = startCommand(['simulate', 'scheme', '--json', '--port', port, ...words])
    const [printed] = await started.line(/\{[^}]*\}/)
    return { child: started, printed: JSON.parse(printed) as Record<string, string> }
  }
  const ask = async (path: string, body?: unknown) => {
    const answer = await fetch(`${url}/_simulator/${path}`, body === undefined ? {} : post(body))
    if (!answer.ok) throw new Error(`the simulator answered ${answer.status} to ${path}`)
    return (await answer.json()) as Record<string, unknown>
  }
  return {
    installation,
    simulator: {
      url: url ?? '',
      stats: () => statsOf(url ?? ''),
      tokens: async () => (await ask('tokens'))['tokens'] as SimulatedToken[],
      befall: async (reference, deed) => {
        await ask(`tokens/${reference}`, deed)
      },
      notify: async to => {
        await ask('notifications', { url: to })
      },
      kill9: async () => {
        await child.child.kill9()
      },
      restart: async () => {
        child = await start(new URL(url ?? '').port)
        editFile()
      },
    },
    close: async () => {
      await installation.close()
      await child.child.kill9()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
