import { mount } from 'svelte';
import App from './App.svelte';
import './app.css';
import './pages.css';

mount(App, { target: document.body });
