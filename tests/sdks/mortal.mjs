// The server that a case may kill and start again; the other side is in restarts.py.

import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';

export class Server {
  #port;

  constructor(port) {
    this.#port = port;
  }

  kill = () => this.#ask('kill');

  start = () => this.#ask('start');

  async #ask(wish) {
    const socket = connect(this.#port, '127.0.0.1');
    await once(socket, 'connect');
    socket.end(`${wish}\n`);
    const answer = await text(socket);
    if (answer !== 'done\n') throw new Error(`the server could not ${wish}`);
  }
}
